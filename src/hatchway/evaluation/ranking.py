"""The whole catalogue ranked for every case, in blocks; what comes out is counts, never a sorted catalogue."""

import numpy as np
import torch
from torch import Tensor

from hatchway.data.engagements import Engagements, Int64
from hatchway.errors import FailureError, UsageError
from hatchway.evaluation.cases import Cases
from hatchway.evaluation.ranks import Float64, Ranks
from hatchway.evaluation.scoring import Scorer
from hatchway.progress import Progress

_SCORES_AT_ONCE = 2**24
"""Scores held at once, 64 MiB: large enough for a fast matrix product, small beside any model."""
_CASES_AT_ONCE = 4096
"""Contexts given to a query tower at once, however small the catalogue."""


def rank_cases(
    scorer: Scorer, cases: Cases, engagements: Engagements, *, depth: int | None = None, block: int | None = None
) -> Ranks:
    """Rank all candidates of every case and return where the relevant items stand.

    The candidates of a case are all N items but the excluded ones. With ``depth`` only the first ``depth`` positions
    are worked out, which is several times faster and all that metrics at cut-offs up to ``depth`` need; ties are
    counted over the whole catalogue all the same.

    Args:
        scorer: gives the scores, block by block; which of two candidates ranks higher is decided by them alone.
        cases: the Q cases.
        engagements: the log that the cases were made from.
        depth: how deep the ranks shall be exact; None for all the way down.
        block: cases at once; by default as many as keep the block of scores near 64 MiB.

    Raises:
        FailureError: a score is NaN; the message names the buyer row and the item row.
        UsageError: ``depth`` or ``block`` is below 1, or the scorer's scores have another shape than asked for.
    """
    for name, value in (("depth", depth), ("block", block)):
        if value is not None and value < 1:
            raise UsageError(f"{name} = {value}; it must be at least 1, or None")
    better, tied = (np.empty(len(cases.relevant_items), np.int64) for _ in range(2))
    begin = 0
    with torch.inference_mode(), Progress(len(cases), "ranking the catalogue", "case") as progress:
        while begin < len(cases):
            end = min(begin + (block or 1), len(cases))
            scores = _scores(scorer, cases, engagements, begin, end)
            if block is None:  # the first block of one case has told N
                block = int(np.clip(_SCORES_AT_ONCE // scores.shape[1], 1, _CASES_AT_ONCE))
            mine = slice(cases.relevant_offsets[begin], cases.relevant_offsets[end])
            better[mine], tied[mine] = _rank_block(scores, cases, begin, end, depth)
            progress.advance(end - begin)
            begin = end
    return Ranks(cases.relevant_offsets, better, tied, depth)


def _scores(scorer: Scorer, cases: Cases, engagements: Engagements, begin: int, end: int) -> Tensor:
    """Ask for one block of scores and check what comes."""
    scores = scorer.scores(cases.contexts(engagements, begin, end, scorer.history_length))
    highest = max(cases.relevant_items.max(initial=0), cases.excluded_items.max(initial=0))
    if scores.ndim != 2 or scores.shape[0] != end - begin or scores.shape[1] <= highest:
        raise UsageError(
            f"the scorer returned scores of shape {tuple(scores.shape)} for {end - begin} cases; "
            f"it must be [{end - begin}, N], one column for each of the N items of the catalogue (N > {highest})"
        )
    where = torch.isnan(scores.amax(dim=1)).nonzero()
    if len(where):
        case = int(where[0])
        item = int(torch.isnan(scores[case]).nonzero()[0])
        raise FailureError(
            f"the score of item row {item} for buyer row {cases.buyers[begin + case]} is NaN, so that nothing can be "
            "ranked; the model has diverged or was fed NaN features: go back to an earlier checkpoint"
        )
    return scores


def _rank_block(scores: Tensor, cases: Cases, begin: int, end: int, depth: int | None) -> tuple[Int64, Int64]:
    """Return better and tied counts of the relevant items of the cases ``begin:end``."""
    rows, items = _block_pairs(cases.relevant_offsets, cases.relevant_items, begin, end, scores.device)
    out_rows, out_items = _block_pairs(cases.excluded_offsets, cases.excluded_items, begin, end, scores.device)
    if any(step == 0 for step in scores.stride()):
        scores = scores.clone()  # an expanded view cannot be masked in one place
    kept = scores[out_rows, out_items]
    scores[out_rows, out_items] = -torch.inf
    own = scores[rows, items]
    if depth is None:
        better, tied = _count_all(scores, rows, own)
    else:
        better, tied = _count_first(scores, rows, own, depth)
    # What was left out now stands among the candidates that score -inf on their own account, and is taken off there.
    left_out = torch.bincount(out_rows, minlength=end - begin)
    exact = better < (scores.shape[1] if depth is None else depth)
    tied -= torch.where((own == -torch.inf) & exact, left_out[rows], 0)
    scores[out_rows, out_items] = kept  # the scorer may keep this tensor
    return better.cpu().numpy(), tied.cpu().numpy()


def _block_pairs(
    offsets: Int64, items: np.ndarray, begin: int, end: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return the (row of the block, item) pairs of the cases ``begin:end``."""
    rows = np.repeat(np.arange(end - begin), np.diff(offsets[begin : end + 1]))
    columns = items[offsets[begin] : offsets[end]].astype(np.int64)
    return torch.from_numpy(rows).to(device), torch.from_numpy(columns).to(device)


def _count_all(scores: Tensor, rows: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """Count by searching each relevant item's score in its row, sorted (NumPy's sort of a row is the fastest)."""
    ordered = torch.from_numpy(np.sort(scores.cpu().numpy(), axis=1))
    rows, own = rows.cpu(), own.cpu()
    counts = torch.bincount(rows, minlength=len(scores))
    column = torch.arange(len(rows)) - (counts.cumsum(0) - counts)[rows]
    asked = torch.zeros(len(scores), int(counts.max()), dtype=scores.dtype)
    asked[rows, column] = own
    below, not_above = (torch.searchsorted(ordered, asked, right=right)[rows, column] for right in (False, True))
    return (scores.shape[1] - not_above).to(scores.device), (not_above - below).to(scores.device)


def _count_first(scores: Tensor, rows: Tensor, own: Tensor, depth: int) -> tuple[Tensor, Tensor]:
    """Count within the first ``depth`` scores of each row; only a tie that they cut is counted over the whole row."""
    first = scores.topk(min(depth, scores.shape[1]), dim=1).values
    last = first[:, -1]
    better, tied = torch.full_like(rows, depth), torch.ones_like(rows)
    inside = (own >= last[rows]).nonzero().squeeze(1)
    mine, theirs = own[inside, None], first[rows[inside]]
    better[inside], tied[inside] = (theirs > mine).sum(dim=1), (theirs == mine).sum(dim=1)
    on_the_edge = inside[own[inside] == last[rows[inside]]]
    cut = torch.unique(rows[on_the_edge])
    ties = torch.zeros(len(scores), dtype=rows.dtype, device=rows.device)
    ties[cut] = (scores[cut] == last[cut, None]).sum(dim=1)
    tied[on_the_edge] = ties[rows[on_the_edge]]
    return better, tied


def rank_by_item(scores: Int64 | Float64, cases: Cases) -> Ranks:
    """Rank by one score an item, the same in every case, exactly and without a block of scores.

    Args:
        scores: [N], without NaN; equal scores tie.
        cases: the Q cases.

    Raises:
        FailureError: a score is NaN.
    """
    if np.isnan(scores).any():
        raise FailureError(
            f"the score of item row {int(np.isnan(scores).argmax())} is NaN, so that nothing can be ranked"
        )
    values, level = np.unique(scores, return_inverse=True)
    count = np.bincount(level)
    above = len(scores) - np.cumsum(count)
    # A case's excluded items, as numbers that sort by case and then by level, so that counting is searching.
    base = np.arange(len(cases), dtype=np.int64) * len(values)
    excluded = np.sort(np.repeat(base, np.diff(cases.excluded_offsets)) + level[cases.excluded_items])
    base, mine = np.repeat(base, np.diff(cases.relevant_offsets)), level[cases.relevant_items]
    left, right = (np.searchsorted(excluded, base + mine, side) for side in ("left", "right"))
    higher = np.searchsorted(excluded, base + len(values), "left") - right
    return Ranks(cases.relevant_offsets, above[mine] - higher, count[mine] - (right - left))
