"""What holds of every log: parts in order, contexts strictly before, nothing drawn twice, nothing lost."""

import hypothesis
import numpy as np
import polars as pl
from event_sources import FrameSource
from hypothesis import strategies as st

from hatchway.data.engagements import Engagements, Part, known_ranges
from hatchway.data.log import build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.errors import DataError


@st.composite
def _frames(draw: st.DrawFn) -> pl.DataFrame:
    """Draw a log of up to 200 rows with few buyers, items and moments, so that ties are many."""
    rows = draw(st.integers(3, 200))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    frame = pl.DataFrame(
        {
            "buyer": generator.integers(0, draw(st.integers(1, 12)), rows),
            "item": generator.integers(0, draw(st.integers(1, 30)), rows),
            "order": generator.permutation(rows),
            "split": generator.choice(["train", "validation", "test"], rows, p=[0.8, 0.1, 0.1]),
        }
    )
    if draw(st.booleans()):
        frame = frame.with_columns(time=pl.Series(generator.integers(0, draw(st.integers(1, 50)), rows) * 40_000))
    return frame


def _built(frame: pl.DataFrame, split: SplitSettings, seed: int = 0) -> Engagements:
    try:
        return build_log(FrameSource(frame), PositivesSettings(), split, seed).engagements
    except DataError:
        hypothesis.reject()


_PROTOCOLS = st.sampled_from(["given", "leave-one-out", "global-time", "none"])


@hypothesis.settings(max_examples=25)
@hypothesis.given(_frames(), _PROTOCOLS)
def test_a_buyers_rows_stand_together_and_their_parts_never_fall(frame: pl.DataFrame, protocol: str) -> None:
    """So that what training may know of a buyer is a prefix of the buyer's rows."""
    e = _built(frame, SplitSettings.parse({"protocol": protocol}))
    assert len(e) == len(frame)
    assert e.offsets[0] == 0
    assert e.offsets[-1] == len(e)
    for buyer, (begin, end) in enumerate(zip(e.offsets[:-1].tolist(), e.offsets[1:].tolist(), strict=True)):
        assert end > begin
        assert (e.buyers[begin:end] == buyer).all()
        assert (np.diff(e.parts[begin:end]) >= 0).all()
        assert (e.parts[begin : e.training_end[buyer]] == Part.TRAIN).all()
        assert (e.parts[e.training_end[buyer] : end] > Part.TRAIN).all()


@hypothesis.settings(max_examples=25)
@hypothesis.given(_frames(), _PROTOCOLS)
def test_a_context_is_a_prefix_of_rows_strictly_before_and_of_no_later_part(frame: pl.DataFrame, protocol: str) -> None:
    """In time where there are times, and never the row itself."""
    e = _built(frame, SplitSettings.parse({"protocol": protocol}))
    for row in range(len(e)):
        begin, end = int(e.offsets[e.buyers[row]]), int(e.context_end[row])
        assert begin <= end <= row
        assert (e.parts[begin:end] <= e.parts[row]).all()
        if e.times is not None:
            assert (e.times[begin:end] < e.times[row]).all()
            assert end == row or e.times[end] >= e.times[row], "the prefix is as long as it may be"
        assert e.query_items[row] in {-1, *e.items[begin:end].tolist()}
        assert e.query_items[row] != e.items[row]


@hypothesis.settings(max_examples=25)
@hypothesis.given(_frames(), _PROTOCOLS, st.sampled_from([0.5, 3.0, None]))
def test_what_is_known_is_training_and_is_before(frame: pl.DataFrame, protocol: str, days: float | None) -> None:
    """Of every row, held out or not."""
    e = _built(frame, SplitSettings.parse({"protocol": protocol}))
    begin, end = known_ranges(e, np.arange(len(e)), days)
    assert (begin <= end).all()
    assert (begin >= e.offsets[e.buyers]).all()
    assert (end <= e.training_end[e.buyers]).all()
    if days is not None and e.times is not None:
        assert (end <= e.context_end).all()


@hypothesis.settings(max_examples=25)
@hypothesis.given(_frames(), st.floats(0.05, 0.95), st.integers(0, 5))
def test_a_drawn_validation_moves_rows_and_changes_nothing_else(frame: pl.DataFrame, share: float, seed: int) -> None:
    """The buyers' rows are the same ones, every buyer who trained still trains, and the share is kept to one row."""
    frame = frame.with_columns(pl.col("split").replace("validation", "train"))
    whole = _built(frame, SplitSettings(protocol="given"))
    drawn = _built(frame, SplitSettings(protocol="given", validation_fraction=share), seed)
    for begin, end in zip(whole.offsets[:-1].tolist(), whole.offsets[1:].tolist(), strict=True):
        assert sorted(drawn.items[begin:end].tolist()) == sorted(whole.items[begin:end].tolist())
        before = int((whole.parts[begin:end] == Part.TRAIN).sum())
        moved = int((drawn.parts[begin:end] == Part.VALIDATION).sum())
        assert (drawn.parts[begin:end] == Part.TRAIN).sum() == before - moved
        assert moved <= max(before - 1, 0)
        assert abs(moved - share * before) < 1 or moved == before - 1


@hypothesis.settings(max_examples=25)
@hypothesis.given(_frames(), _PROTOCOLS)
def test_the_order_in_which_a_log_is_read_does_not_matter(frame: pl.DataFrame, protocol: str) -> None:
    """``order`` says where a row stands, not where it is read."""
    split = SplitSettings.parse({"protocol": protocol})
    one, other = (
        _built(frame, split),
        build_log(FrameSource(frame.sort("item", "order")), PositivesSettings(), split, 0).engagements,
    )
    catalogue, resorted = FrameSource(frame).catalogue(), FrameSource(frame.sort("item", "order")).catalogue()
    assert catalogue.external(one.items).to_list() == resorted.external(other.items).to_list()
    assert one.parts.tolist() == other.parts.tolist()
    assert one.context_end.tolist() == other.context_end.tolist()
