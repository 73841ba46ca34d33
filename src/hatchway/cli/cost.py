"""``hatchway cost``: what a batch of sampled negatives costs, beside the softmax over the whole catalogue."""

from typing import Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit, size, table


def run(
    catalogue: Annotated[int, typer.Option(help="N, items in the catalogue.")] = 20_000_000,
    dim: Annotated[int, typer.Option(help="d, numbers in a vector.")] = 64,
    batch: Annotated[int, typer.Option(help="B, positives in a batch.")] = 4096,
    uniform: Annotated[int, typer.Option(help="U, uniform negatives a batch, shared by its rows.")] = 1000,
    hard: Annotated[int, typer.Option(help="H, negatives mined for each positive.")] = 2,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Count what a batch of negatives costs.

    Prints the multiply-adds beside those of the softmax over the whole catalogue, how many negatives each positive
    sees, and how many more items have to be embedded. Multiply-adds are those of the scores alone; the passes through
    the item tower are counted apart.
    """
    from hatchway.cost import Workload, cost_of, in_words

    begin(quiet)
    workload = Workload.parse(
        {"catalogue": catalogue, "dimension": dim, "batch": batch, "uniform": uniform, "hard": hard}
    )
    cost = cost_of(workload)
    softmaxes = {
        "full softmax, one example": cost.full_example,
        "full softmax, one batch": cost.full_batch,
        "in-batch": cost.in_batch,
        "in-batch and shared uniform": cost.with_shared,
        "and each row's own hard columns": cost.with_hard,
        "and all rows' hard columns, shared": cost.with_hard_shared,
    }
    work = table(
        [
            [name, count, in_words(count), "" if name.startswith("full") else f"{cost.cheaper(count):,.0f}×"]
            for name, count in softmaxes.items()
        ],
        ["scores", "multiply-adds", "", "cheaper than full"],
    )
    ratio = "none" if cost.easy_per_hard is None else f"{cost.easy_per_hard:,.0f} : 1"
    counts = table(
        [
            ["in-batch negatives per positive", f"{cost.in_batch_negatives:,}"],
            ["easy negatives per positive", f"{cost.easy_negatives:,}"],
            ["easy to hard", ratio],
            [
                "extra item-tower passes a batch",
                f"{cost.extra_item_passes:,} ({cost.extra_item_passes_ratio:.1f}× the positives)",
            ],
            ["logits in memory, float32", size(cost.logit_bytes)],
            ["logits of a full softmax", size(cost.full_logit_bytes)],
        ],
        ["counts", ""],
    )
    payload = {
        **workload.model_dump(),
        "full_softmax_per_example": cost.full_example,
        "full_softmax_per_batch": cost.full_batch,
        "in_batch": cost.in_batch,
        "in_batch_and_shared": cost.with_shared,
        "with_own_hard_columns": cost.with_hard,
        "with_shared_hard_columns": cost.with_hard_shared,
        "cheaper_in_batch": cost.cheaper(cost.in_batch),
        "cheaper_in_batch_and_shared": cost.cheaper(cost.with_shared),
        "cheaper_with_own_hard_columns": cost.cheaper(cost.with_hard),
        "in_batch_negatives_per_positive": cost.in_batch_negatives,
        "easy_negatives_per_positive": cost.easy_negatives,
        "hard_negatives_per_positive": cost.hard_negatives,
        "easy_per_hard": cost.easy_per_hard,
        "extra_item_passes": cost.extra_item_passes,
        "extra_item_passes_ratio": cost.extra_item_passes_ratio,
        "logit_bytes": cost.logit_bytes,
        "full_softmax_logit_bytes": cost.full_logit_bytes,
    }
    emit(payload, f"{work}\n\n{counts}", json)
