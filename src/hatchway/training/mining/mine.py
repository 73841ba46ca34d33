"""Mining itself: the earlier index is asked for each positive's query, and a few of its near misses are kept.

Ranks are those of the *raw* ranking: all that the index answers, in the order of the serving score, the positive and
whatever will be refused included. The window is cut out of that, and what is refused in it is not replaced from
outside. (Where refused items are taken out first and ranks counted among the rest, a positive with many relists has
its window further down than its neighbour, and a filter that is switched on moves everybody's.)

Queries go through block by block, equal ones once; no more than a block's answers are ever in memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Float32, Int64
from hatchway.index.protocol import Neighbours
from hatchway.negatives.sources import Reason
from hatchway.progress import Progress
from hatchway.randomness import stream
from hatchway.training.mining.bounds import within_bounds
from hatchway.training.mining.lots import draw_lots
from hatchway.training.mining.mined import Mined
from hatchway.training.mining.row_filter import RowFilter
from hatchway.training.mining.settings import MiningSettings
from hatchway.training.mining.walk import Int8, Walked, Windows, joined, walk

_EMBEDDED_AT_ONCE = 4096
"""Queries that are embedded together, whatever the block of the search: sums may depend on what is summed together."""

_ROWS_AT_ONCE = 2048

Judge = Callable[[Int64, Int64], npt.NDArray[np.floating]]
"""Returns the scores of [P] engagement rows with [P] item rows, higher is better, NaN where it cannot say."""


class RowQueries(Protocol):
    """The queries of a log's rows, as an earlier model understands them."""

    def groups(self, rows: Int64) -> Int64:
        """Return [R] int64 numbers, equal for rows that ask the same, and −1 where there is nothing to ask with."""
        ...

    def vectors(self, rows: Int64) -> Float32:
        """Return the [R, d] query vectors of rows that have one."""
        ...


@dataclass(frozen=True, eq=False)
class Earlier:
    """An earlier model, as mining asks it.

    Attributes:
        search: returns the k best of its M items for [Q, d] queries.
        vectors: [M, d] float32, the vectors of its items.
        here: [M] int64, which item of the log each of its items is, −1 for none.
        there: [N] int64, which of its items each item of the log is, −1 for none.
        queries: the log's rows as it understands them.
    """

    search: Callable[[Float32, int], Neighbours]
    vectors: Float32
    here: Int64
    there: Int64
    queries: RowQueries


def mine(
    earlier: Earlier,
    rows: Int64,
    rules: RowFilter,
    settings: MiningSettings,
    seed: int,
    judge: Judge | None = None,
) -> Mined:
    """Mine hard negatives for positives.

    The result is a function of the arguments, whatever ``settings.queries_at_once``: which candidates of a window are
    taken first is decided by a lot for each pair of row and item.

    Args:
        earlier: the earlier model.
        rows: [P] int64, ascending engagement rows of the positives.
        rules: what may not stand for a row, and the log.
        settings: window, cap and bounds.
        seed: the run's seed.
        judge: a stronger scorer; a candidate that it does not put ``judge_margin`` below the positive is refused, and
            so is one of which it cannot say.
    """
    groups = earlier.queries.groups(rows)
    asked = groups >= 0
    by_group = np.argsort(groups, kind="stable")[int((~asked).sum()) :]
    firsts = np.flatnonzero(np.diff(groups[by_group], prepend=-1))
    ends = np.append(firsts[1:], len(by_group))
    key = int(stream(seed, "mining").integers(2**64, dtype=np.uint64))
    refusal = _Refusal(rules, settings, judge, items=len(earlier.there))
    positive_scores, positive_ranks = np.full(len(rows), np.nan, np.float32), np.zeros(len(rows), np.int32)
    parts: list[Walked] = []
    with Progress(len(firsts), "mining", "question") as progress:
        for begin, queries, found in _answers(earlier, rows[by_group[firsts]], settings):
            mine_first, mine_end = firsts[begin], ends[begin + len(queries) - 1]
            for start in range(mine_first, mine_end, _ROWS_AT_ONCE):
                of_rows = by_group[start : min(start + _ROWS_AT_ONCE, mine_end)]
                answers = np.searchsorted(firsts[begin:], np.arange(start, start + len(of_rows)), side="right") - 1
                block = _Block(earlier, rows[of_rows], queries[answers], found.rows[answers], found.scores[answers])
                scores, ranks = block.positives(rules)
                positive_scores[of_rows], positive_ranks[of_rows] = scores, ranks
                windows = block.windows(settings)
                lots = draw_lots(key, block.rows, windows.items)
                walked = walk(windows, lots, refusal.of(block.rows, scores), settings.cap)
                parts.append(replace(walked, places=of_rows[walked.places]))
            progress.advance(len(queries))
    whole = joined(parts)
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.bincount(whole.places, minlength=len(rows)), out=offsets[1:])
    return Mined(
        rows=rows,
        offsets=offsets,
        items=np.where(whole.items < len(earlier.there), whole.items, np.int32(-1)),
        scores=whole.scores,
        ranks=whole.ranks,
        reasons=whole.reasons,
        positive_scores=positive_scores,
        positive_ranks=positive_ranks,
        asked=asked,
        queries=len(firsts),
        cap=settings.cap,
    )


def _answers(earlier: Earlier, rows: Int64, settings: MiningSettings) -> Iterator[tuple[int, Float32, Neighbours]]:
    """Yield blocks of query vectors with their answers, and the place of the first of each."""
    deepest = min(settings.last_rank, len(earlier.here))  # below that there is nothing, and its columns cost memory
    for begin in range(0, len(rows), _EMBEDDED_AT_ONCE):
        vectors = earlier.queries.vectors(rows[begin : begin + _EMBEDDED_AT_ONCE])
        for start in range(0, len(vectors), settings.queries_at_once):
            queries = vectors[start : start + settings.queries_at_once]
            yield begin + start, queries, earlier.search(queries, deepest)


@dataclass(frozen=True, eq=False)
class _Block:
    """Some positives with their queries [R, d] and the answers [R, k] to them."""

    earlier: Earlier
    rows: Int64
    queries: Float32
    found: Int64
    scores: Float32

    def positives(self, rules: RowFilter) -> tuple[Float32, npt.NDArray[np.int32]]:
        """Return the positives' own scores, NaN where unknown, and ranks, 0 where they are not among the answers."""
        items = self.earlier.there[rules.engagements.items[self.rows]]
        products = np.einsum("rd,rd->r", self.earlier.vectors[np.maximum(items, 0)].astype(np.float64), self.queries)
        scores = np.where(items >= 0, products, np.nan).astype(np.float32)
        hit = (self.found == items[:, None]) & (items >= 0)[:, None]
        return scores, np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, 0).astype(np.int32)

    def windows(self, settings: MiningSettings) -> Windows:
        """Cut the windows out of the raw rankings; an item that this log does not have stands as N + its row there."""
        cut = slice(settings.first_rank - 1, settings.last_rank)
        found = self.found[:, cut]
        here = self.earlier.here[np.maximum(found, 0)]
        unknown = len(self.earlier.there) + found
        return Windows(
            np.where(found < 0, -1, np.where(here >= 0, here, unknown)), self.scores[:, cut], settings.first_rank
        )


@dataclass(frozen=True, eq=False)
class _Refusal:
    """All that is asked of a candidate, the cheap first, the judge last."""

    rules: RowFilter
    settings: MiningSettings
    judge: Judge | None
    items: int

    def of(self, rows: Int64, positive_scores: Float32) -> Callable[[Int64, Int64, Float32], Int8]:
        """Return the question that the walk through the windows of ``rows`` asks."""

        def reasons(places: Int64, items: Int64, scores: Float32) -> Int8:
            return self._reasons(rows[places], items, scores, positive_scores[places])

        return reasons

    def _reasons(self, rows: Int64, items: Int64, scores: Float32, positive_scores: Float32) -> Int8:
        told = np.full(len(items), np.int8(Reason.NOT_ON_OFFER))
        known = np.flatnonzero(items < self.items)
        told[known] = self.rules.reasons(rows[known], items[known])
        told[(told == 0) & ~within_bounds(scores, positive_scores, self.settings)] = Reason.SCORE
        left = np.flatnonzero(told == 0)
        if self.judge is not None and len(left):
            of_candidates = np.asarray(self.judge(rows[left], items[left]))
            of_positives = np.asarray(self.judge(rows[left], self.rules.engagements.items[rows[left]].astype(np.int64)))
            # Written so that NaN, of either, refuses.
            told[left[~(of_candidates <= of_positives - self.settings.judge_margin)]] = Reason.JUDGE
        return told
