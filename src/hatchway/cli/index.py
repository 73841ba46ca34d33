"""``hatchway index``: make the bundle of a run."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from hatchway.cli.import_ import pairs
from hatchway.cli.output import JsonOption, QuietOption, begin, check_place, emit, size, table
from hatchway.errors import UsageError


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run folder.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the bundle; an old bundle is replaced. [default: RUN/bundle]")
    ] = None,
    kind: Annotated[
        Literal["auto", "flat", "ivf-sq8"],
        typer.Option(help="flat looks at every item, ivf-sq8 at some; auto takes flat up to 300,000 items."),
    ] = "auto",
    recall_at: Annotated[int, typer.Option(min=1, help="k of the recall@k that is measured.")] = 500,
    recall_target: Annotated[float, typer.Option(min=0.01, max=1, help="Recall that ivf-sq8 is set to reach.")] = 0.98,
    include_gone: Annotated[
        bool, typer.Option("--include-gone", help="Recommend items, too, that the catalogue calls gone.")
    ] = False,
    new_items: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Table of items that were not there at training: CSV, TSV or Parquet."),
    ] = None,
    new_item_columns: Annotated[
        list[str] | None,
        typer.Option("--map-new", metavar="OURS=THEIRS", help="What a column of FILE means, e.g. --map-new item=id."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Build the index and the bundle of a run.

    The bundle is what serve and recommend answer from: item vectors, index, ids, the query side of the model, and a
    manifest with the hash of each part and the index's recall, measured against exact search. Items that the catalogue
    calls gone are not in the index. The same run gives the same bytes.

    New items (--new-items) are placed by their columns, so the model must read some; they are recommended, and have a
    row of their own. They are in this bundle only: name the file again when the bundle is made again.
    """
    begin(quiet)
    if out is not None:
        check_place(out.parent, f"--out {out}")
    if new_item_columns and new_items is None:
        raise UsageError("--map-new says what the columns of --new-items FILE mean; give that, too")
    from hatchway.data.importers import read_items
    from hatchway.index.build import IndexSettings
    from hatchway.job import index_run
    from hatchway.training.run_folder import RunFolder

    settings = IndexSettings.parse(
        {"kind": kind, "recall_at": recall_at, "recall_target": recall_target, "include_gone": include_gone}
    )
    folder, fresh = RunFolder.open(path), None
    if new_items is not None:
        integer_ids = folder.store().manifest.item_type == "integer"
        fresh = read_items(new_items, pairs("--map-new", new_item_columns or []), integer_ids=integer_ids)
    bundle = index_run(folder, settings, out, fresh)
    index = bundle.manifest.index
    stored = sum(part.bytes for part in bundle.manifest.parts)
    low, high = index.recall_low, index.recall_high
    interval = None if low is None or high is None else f"{low:.4f} to {high:.4f}"
    facts: list[list[object]] = [
        ["items", bundle.manifest.items],
        *([] if fresh is None else [["new items", len(fresh)]]),
        ["items in the index", index.vectors],
        ["dimensions", bundle.manifest.dimension],
        ["index", index.kind if index.kind == "flat" else f"{index.kind}, {index.probes} of {index.cells} cells"],
        [f"recall@{index.recall_at}", index.recall],
        ["its 95 % interval", interval],
        ["measured on queries", index.recall_queries],
        ["size", size(stored)],
    ]
    payload = {
        "bundle": str(bundle.path),
        "digest": bundle.digest,
        "items": bundle.manifest.items,
        "new_items": 0 if fresh is None else len(fresh),
        "dimension": bundle.manifest.dimension,
        "index": index.model_dump(),
        "origin": bundle.manifest.origin,
        "bytes": stored,
    }
    emit(payload, f"{table(facts, [str(bundle.path), ''])}\n\nnext: hatchway serve {path}", json)
