"""The example rows of a report: asked as serving asks."""

from pathlib import Path

import numpy as np
import polars as pl
import torch

from hatchway.data.catalogue import Catalogue
from hatchway.data.log import build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.data.store import write_store
from hatchway.report.rows import example_rows
from hatchway.towers.build import build_model
from hatchway.towers.settings import ModelSettings


def test_a_listing_that_no_context_held_asks_with_its_vector(tmp_path: Path) -> None:
    """Item c, liked best, always came last: nothing was ever predicted from it, and the tower has a random row."""
    events = pl.DataFrame({"buyer": [1, 1, 2, 2, 3, 3], "item": ["a", "c", "b", "c", "d", "c"]})
    catalogue = pl.DataFrame({"item": ["a", "b", "c", "d"], "title": ["A", "B", "C", "D"]})
    store = write_store(tmp_path / "store", events, catalogue)
    log = build_log(store, PositivesSettings(), SplitSettings(protocol="none"), seed=1)
    model = build_model(Catalogue(catalogue), 3, ModelSettings(dimension=8, text_buckets=64), seed=1)
    with torch.inference_mode():
        vectors = model.item(torch.arange(4)).numpy()
    wanted = [row for row in np.argsort(-(vectors @ vectors[2])).tolist() if row != 2]
    (row,) = example_rows(model, log, tmp_path, rows=1)
    assert row.query.item == "c"
    assert [shown.item for shown in row.beside] == ["abcd"[place] for place in wanted]
