"""Small logs and cases, written out by hand."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from hatchway.data.engagements import Engagements, Part
from hatchway.evaluation.cases import Cases

Row = tuple[int, Part, float]
Log = Callable[..., Engagements]
Questions = Callable[..., Cases]


@pytest.fixture
def log_of() -> Log:
    """Return a maker of logs: for each buyer the rows (item, part, weight), oldest first, a second apart."""

    def make(buyers: Sequence[Sequence[Row]], texts: Sequence[str] | None = None) -> Engagements:
        sizes = [len(rows) for rows in buyers]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        flat = [row for rows in buyers for row in rows]
        items = np.array([row[0] for row in flat], np.int32)
        index = np.arange(len(flat), dtype=np.int64)
        buyer = np.repeat(np.arange(len(buyers)), sizes).astype(np.int32)
        before = np.where(index > offsets[buyer], items[index - 1], -1).astype(np.int32)
        return Engagements(
            offsets=offsets,
            buyers=buyer,
            items=items,
            parts=np.array([row[1] for row in flat], np.int8),
            weights=np.array([row[2] for row in flat], np.float32),
            query_items=before,
            times=index,
            context_end=index,
            query_texts=None if texts is None else np.array(texts, object),
        )

    return make


@pytest.fixture
def cases_of() -> Questions:
    """Return a maker of cases without a history: for each the relevant items and the excluded ones."""

    def make(*cases: tuple[Sequence[int], Sequence[int]], buyers: Sequence[int] | None = None) -> Cases:
        def ragged(lists: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
            offsets = np.concatenate([[0], np.cumsum([len(items) for items in lists])]).astype(np.int64)
            return offsets, np.array([item for items in lists for item in items], np.int32)

        none = np.zeros(len(cases), np.int64)
        return Cases(
            np.arange(len(cases), dtype=np.int32) if buyers is None else np.array(buyers, np.int32),
            np.full(len(cases), -1, np.int32),
            none,
            none,
            None,
            *ragged([case[0] for case in cases]),
            *ragged([case[1] for case in cases]),
        )

    return make
