"""Which index a catalogue gets, and the recall that is written down for it."""

import logging

import numpy as np
import numpy.typing as npt
import pytest

from hatchway.errors import SettingsError
from hatchway.index.approximate import IvfIndex
from hatchway.index.build import IndexSettings, build_index, sample_rows
from hatchway.index.exact import ExactIndex
from hatchway.index.protocol import Neighbours

Vectors = npt.NDArray[np.float32]


def _clustered(count: int, seed: int) -> Vectors:
    """Draw vectors in 40 tight clusters, which cells can tell apart."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(40, 16))
    return (centres[generator.integers(40, size=count)] + 0.1 * generator.normal(size=(count, 16))).astype(np.float32)


def _unstructured(count: int, seed: int) -> Vectors:
    """Draw vectors without any structure, of very different lengths: no cell is better than another."""
    generator = np.random.default_rng(seed)
    return (generator.normal(size=(count, 16)) * np.exp(generator.normal(size=(count, 1)))).astype(np.float32)


def test_small_catalogues_get_the_flat_index() -> None:
    """A flat index looks at every vector, and its measured recall is whole."""
    index, facts = build_index(_clustered(2000, 1), _clustered(100, 2), IndexSettings())
    assert isinstance(index, ExactIndex)
    assert (facts.kind, facts.vectors, facts.dimension, facts.cells, facts.probes) == ("flat", 2000, 16, 0, 0)
    assert (facts.recall, facts.recall_at, facts.recall_queries) == (1.0, 500, 100)
    assert (facts.recall_low, facts.recall_high) == (1.0, 1.0)


def test_large_catalogues_get_cells_as_many_as_the_recall_takes() -> None:
    """The measured recall reaches the target, on queries that did not choose the probes."""
    settings = IndexSettings(exact_up_to=1000, recall_target=0.97, recall_at=20)
    index, facts = build_index(_clustered(4000, 1), _clustered(200, 2), settings)
    assert isinstance(index, IvfIndex)
    assert (facts.kind, facts.cells, facts.recall_at, facts.recall_queries) == ("ivf-sq8", 253, 20, 100)
    assert facts.recall is not None
    assert 0.95 < facts.recall <= 1.0
    assert facts.recall_low is not None
    assert facts.recall_high is not None
    assert 0.9 < facts.recall_low < facts.recall <= facts.recall_high <= 1.0
    assert index.probes == facts.probes <= 64


def test_a_harder_target_takes_more_probes() -> None:
    """The probes follow the target."""
    vectors, queries = _unstructured(3000, 1), _unstructured(100, 2)
    probes, recalls = [], []
    for target in (0.3, 0.8, 1.0):
        settings = IndexSettings(kind="ivf-sq8", recall_target=target, recall_at=20)
        _, facts = build_index(vectors, queries, settings)
        probes.append(facts.probes)
        recalls.append(facts.recall or 0.0)
    assert probes[0] < probes[1] < probes[2]
    assert recalls[0] < recalls[1] < recalls[2]
    assert recalls[2] == pytest.approx(1.0)


def test_where_cells_do_not_pay_the_flat_index_is_built(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors without structure would need most cells; the flat index is built instead, and one line says why."""
    caplog.set_level(logging.INFO, logger="hatchway")
    monkeypatch.setattr(logging.getLogger("hatchway"), "propagate", True)
    settings = IndexSettings(exact_up_to=100, recall_at=20)
    index, facts = build_index(_unstructured(3000, 1), _unstructured(60, 2), settings)
    assert isinstance(index, ExactIndex)
    assert (facts.kind, facts.recall) == ("flat", 1.0)
    assert "quarter of its cells" in caplog.text


@pytest.mark.parametrize("kind", ["flat", "ivf-sq8"])
def test_the_kind_asked_for_is_the_kind_built(kind: str) -> None:
    """A kind other than auto is never overruled."""
    _, facts = build_index(_unstructured(300, 1), _unstructured(20, 2), IndexSettings.parse({"kind": kind}))
    assert facts.kind == kind


def test_nothing_to_measure_is_said() -> None:
    """Without queries, or without vectors, no recall is claimed."""
    _, facts = build_index(_clustered(50, 1), np.empty((0, 16)), IndexSettings(kind="ivf-sq8"))
    assert (facts.recall, facts.recall_queries, facts.probes) == (None, 0, 28)
    assert (facts.recall_low, facts.recall_high) == (None, None)
    _, facts = build_index(np.empty((0, 16)), _clustered(5, 1), IndexSettings())
    assert (facts.recall, facts.vectors, facts.recall_queries) == (None, 0, 0)


def test_only_some_rows() -> None:
    """Recall is measured among the rows that are indexed."""
    index, facts = build_index(_clustered(200, 1), _clustered(20, 2), IndexSettings(), rows=np.arange(0, 200, 20))
    assert (facts.vectors, facts.recall, facts.recall_at) == (10, 1.0, 10)
    assert set(index.search(_clustered(3, 3), 10).rows.ravel().tolist()) == set(range(0, 200, 20))


def test_the_same_twice() -> None:
    """Cells, probes and recall do not change from build to build."""
    settings = IndexSettings(kind="ivf-sq8")
    first = build_index(_clustered(3000, 1), _clustered(100, 2), settings)[1]
    assert build_index(_clustered(3000, 1), _clustered(100, 2), settings)[1] == first


def test_the_flat_index_is_measured_against_plain_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flat index that lost an item would be found out, since it is not measured against itself."""
    honest = ExactIndex.search

    def forgetful(index: ExactIndex, queries: npt.ArrayLike, k: int, *, without: object = None) -> Neighbours:
        found = honest(index, queries, k)
        if index._compiling:
            found.rows[:, 0] = found.rows[:, 1]
        return found

    monkeypatch.setattr(ExactIndex, "search", forgetful)
    _, facts = build_index(_clustered(300, 1), _clustered(20, 2), IndexSettings(recall_at=10))
    assert facts.recall == pytest.approx(0.9)


def test_misspelt_settings_are_refused() -> None:
    """The nearest valid key is named."""
    with pytest.raises(SettingsError, match="recall_target"):
        IndexSettings.parse({"recall_targt": 0.9})
    with pytest.raises(SettingsError, match="kind"):
        IndexSettings.parse({"kind": "hnsw"})


def test_sampled_rows_are_different_rows() -> None:
    """Rows are drawn without replacement, ascending; all of them where there are not enough."""
    rows = sample_rows(1000, 50, np.random.default_rng(3))
    assert len(set(rows.tolist())) == 50
    assert (np.diff(rows) > 0).all()
    assert rows.max() < 1000
    assert sample_rows(4, 50, np.random.default_rng(3)).tolist() == [0, 1, 2, 3]
    assert sample_rows(0, 50, np.random.default_rng(3)).tolist() == []
