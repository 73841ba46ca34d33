"""Which index a catalogue gets, and how well it answers: measured on sampled queries, never assumed."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pydantic

from hatchway.index.approximate import IvfIndex, build_ivf
from hatchway.index.exact import ExactIndex
from hatchway.index.protocol import Float32, Index, Neighbours, checked_rows, checked_vectors
from hatchway.index.recall import interval_of, recall_at_k
from hatchway.progress import note
from hatchway.settings import Settings

_FIRST_PROBES = 8


class IndexSettings(Settings):
    """How the index of a bundle is built.

    Attributes:
        kind: ``flat`` looks at every vector; ``ivf-sq8`` looks into some cells, and is measured; ``auto`` takes flat up
            to ``exact_up_to`` items, and above where no share of the cells worth having reaches the recall.
        exact_up_to: the largest catalogue for which ``auto`` takes flat without trying the other.
        cells: how many cells an IVF index has; about 4·sqrt(items) where not given.
        recall_at: k of the recall@k that is measured, and written to the manifest.
        recall_target: an IVF index looks into as many cells as this recall takes, the low end of its interval included.
        sampled_queries: how many queries recall is measured on.
        include_gone: index items, too, that the catalogue calls gone.
        seed: where k-means starts, and which queries are sampled.
    """

    kind: Literal["auto", "flat", "ivf-sq8"] = "auto"
    exact_up_to: int = pydantic.Field(default=300_000, ge=0)
    cells: int | None = pydantic.Field(default=None, ge=1)
    recall_at: int = pydantic.Field(default=500, ge=1)
    recall_target: float = pydantic.Field(default=0.98, gt=0, le=1)
    sampled_queries: int = pydantic.Field(default=512, ge=2)
    include_gone: bool = False
    seed: int = 0


class IndexFacts(pydantic.BaseModel):
    """What a built index is, and what was measured of it.

    Attributes:
        kind: ``flat`` or ``ivf-sq8``.
        vectors: how many vectors it holds.
        dimension: the numbers in each.
        cells: cells of an IVF index, 0 for flat.
        probes: cells looked into for each query, 0 for flat.
        recall: mean recall@``recall_at`` against exact search; None where there was nothing to measure.
        recall_at: its k (or the number of vectors, if that is smaller).
        recall_queries: how many queries it was measured on; none of them had a say in ``probes``.
        recall_low: where the recall of all such queries begins, with 95 % confidence; None where nothing was measured.
        recall_high: where it ends.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    kind: Literal["flat", "ivf-sq8"]
    vectors: int
    dimension: int
    cells: int
    probes: int
    recall: float | None
    recall_at: int
    recall_queries: int
    recall_low: float | None = None
    recall_high: float | None = None


@dataclass(frozen=True)
class _Oracle:
    """Sampled queries with their exact answers."""

    vectors: Float32
    queries: Float32
    answers: Neighbours

    def shares(self, index: Index, part: slice) -> npt.NDArray[np.float64]:
        """Return the recall of ``index`` for each query of a part."""
        queries, answers = self.queries[part], Neighbours(self.answers.scores[part], self.answers.rows[part])
        return recall_at_k(self.vectors, queries, index.search(queries, answers.rows.shape[1]).rows, answers)


def build_index(
    vectors: npt.ArrayLike, queries: npt.ArrayLike, settings: IndexSettings, rows: npt.ArrayLike | None = None
) -> tuple[ExactIndex | IvfIndex, IndexFacts]:
    """Build the index that ``settings`` ask for, and measure its recall against exact search.

    The queries of even place choose how many cells an IVF index looks into; recall is measured on the others.

    Args:
        vectors: [N, d] item vectors, raw.
        queries: [Q, d] query vectors like those that will be asked; may be empty.
        settings: kind and measure.
        rows: the row numbers to be found; all where None.

    Raises:
        DataError: vectors or queries are not finite, or a row number is out of range or there twice.
    """
    whole = checked_vectors(vectors, "item vectors")
    asked = checked_vectors(queries, "queries", whole.shape[1])
    labels = checked_rows(rows, len(whole))
    k = max(1, min(settings.recall_at, len(labels)))
    flat = ExactIndex(whole, rows)
    if settings.kind == "ivf-sq8" or (settings.kind == "auto" and len(labels) > settings.exact_up_to):
        oracle = _Oracle(whole, asked, flat.search(asked, k))
        ivf = build_ivf(whole, rows, cells=settings.cells, seed=settings.seed)
        worth_it = _choose_probes(ivf, oracle, slice(0, None, 2), settings.recall_target)
        if worth_it or settings.kind == "ivf-sq8":
            return ivf, _facts(ivf, oracle, slice(1, None, 2), cells=ivf.cells, probes=ivf.probes)
        note(
            f"index: to reach recall@{k} = {settings.recall_target} IVF,SQ8 must look into more than a quarter of its "
            "cells; the flat index, which looks at every vector, is built instead"
        )
    # The flat index is measured, too: against plain float32 products, with nothing compiled.
    plain = ExactIndex(whole, rows, products="float32", use_compiled=False)
    return flat, _facts(flat, _Oracle(whole, asked, plain.search(asked, k)), slice(None), cells=0, probes=0)


def _choose_probes(index: IvfIndex, oracle: _Oracle, part: slice, target: float) -> bool:
    """Set the fewest probes, doubling, that reach the target; say whether that is at most a quarter of the cells."""
    if not len(oracle.queries[part]):
        return True
    index.set_probes(_FIRST_PROBES)
    while not _reaches(oracle.shares(index, part), target) and index.probes < index.cells:
        index.set_probes(2 * index.probes)
    return 4 * index.probes <= index.cells


def _reaches(shares: npt.NDArray[np.float64], target: float) -> bool:
    """Say whether the recall of all such queries reaches the target, and not by the luck of those that were sampled."""
    low, _ = interval_of(shares)
    return bool(shares.min() == 1) or (low is not None and low >= target)


def _facts(index: Index, oracle: _Oracle, part: slice, cells: int, probes: int) -> IndexFacts:
    """Measure ``index`` on a part of the queries and say what it is."""
    measured = len(oracle.queries[part]) if len(index) else 0
    shares = oracle.shares(index, part) if measured else np.empty(0)
    low, high = interval_of(shares)
    if not cells and measured and shares.min() == 1:
        low = 1.0  # exact for any query, whatever was sampled
    return IndexFacts(
        kind="ivf-sq8" if cells else "flat",
        vectors=len(index),
        dimension=index.dimension,
        cells=cells,
        probes=probes,
        recall=float(shares.mean()) if measured else None,
        recall_at=oracle.answers.rows.shape[1],
        recall_queries=measured,
        recall_low=low,
        recall_high=high,
    )


def sample_rows(count: int, sampled: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw ``sampled`` different row numbers below ``count`` (all, where there are fewer), ascending."""
    return np.sort(generator.choice(count, size=min(sampled, count), replace=False)).astype(np.int64)
