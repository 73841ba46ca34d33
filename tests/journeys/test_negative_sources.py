"""What the sources of negatives are measured on: ratings as a log of what was shown, and what each source draws."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from hatchway.data.engagements import Part, training_counts
from hatchway.data.log import Log, build_log
from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.data.store import write_store
from hatchway.training.batches import Batch, epoch_batches

FOLDER = Path(__file__).parents[2] / "experiments" / "negative_sources"
USERS, FILMS, RATED = 40, 600, 50


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """Load the scripts, which are no part of the package and name each other by file."""
    names = ("sources", "movielens", "measuring", "run")
    sys.path.insert(0, str(FOLDER))
    yield {name: importlib.import_module(name) for name in names}
    sys.path.remove(str(FOLDER))
    for name in names:
        del sys.modules[name]


@pytest.fixture(scope="module")
def ratings() -> pl.DataFrame:
    """Make 40 users with 50 films each, rated 1 to 5 at random."""
    draws = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "user_id": np.repeat(np.arange(USERS), RATED),
            "seq": np.tile(np.arange(RATED), USERS),
            "item_id": np.concatenate([draws.permutation(FILMS)[:RATED] for _ in range(USERS)]),
            "rating": draws.integers(1, 6, USERS * RATED),
        }
    )


@pytest.fixture(scope="module")
def log(scripts: dict[str, ModuleType], ratings: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Read them as a log of what was shown."""
    store = write_store(tmp_path_factory.mktemp("films") / "store", scripts["movielens"].shown_and_liked(ratings))
    return build_log(store, PositivesSettings(), SplitSettings(protocol="given"), 1, impressions=True)


def batches_of(log: Log, size: int) -> list[Batch]:
    """Return one epoch's batches."""
    engagements = log.engagements
    rows = engagements.positives(Part.TRAIN)
    return list(epoch_batches(engagements, rows, batch=size, history=5, mask_days=0, seed=1, epoch=0))


def test_low_ratings_are_shown_and_the_last_fifth_of_what_is_liked_is_held_out(
    scripts: dict[str, ModuleType], ratings: pl.DataFrame
) -> None:
    """Positives are the ratings of 4 and 5; nothing shown after the last that is trained on is of training."""
    events = scripts["movielens"].shown_and_liked(ratings)
    assert len(events) == len(ratings)
    for user in range(USERS):
        mine = events.filter(pl.col("buyer") == user)
        liked = mine.filter(pl.col("rating") >= 4)
        assert liked["event"].unique().to_list() == ["rating"]
        assert mine.filter(pl.col("rating") < 4)["event"].unique().to_list() == ["impression"]
        assert liked["split"].to_list()[::-1].index("train") == len(liked) // 5
        parts = mine["split"].to_list()
        end = parts.index("test")
        assert set(parts[end:]) == {"test"}
        assert mine["event"][end - 1] == "rating"


def test_impressions_are_the_buyers_own_low_ratings_and_the_queue_is_the_batch_before(
    scripts: dict[str, ModuleType], log: Log, ratings: pl.DataFrame
) -> None:
    """Every source draws from where its name says, by the package's own draws."""
    sources = scripts["sources"]
    low = {(user, film) for user, film, stars in ratings.select("user_id", "item_id", "rating").rows() if stars < 4}
    counts = torch.from_numpy(training_counts(log.engagements, len(log.catalogue)))
    vectors = torch.nn.functional.normalize(torch.randn(len(counts), 8, generator=torch.Generator().manual_seed(1)))
    drawing = sources.Drawing.of(log, counts, vectors)
    first, second = batches_of(log, 64)[:2]
    ranked = drawing.ranked(vectors[second.positives])

    def draw(source: str, batch: Batch) -> Any:
        return drawing.draw(source, batch, ranked, torch.Generator().manual_seed(2))

    assert sources.sources_of(log) == sources.SOURCES
    assert len(draw(sources.QUEUE, first)) == 0
    drawing.after(first)
    assert sorted(draw(sources.QUEUE, second).tolist()) == sorted(first.positives.tolist())
    users = log.buyers.external(second.contexts.buyers).to_list()
    shown = draw(sources.IMPRESSIONS, second)
    films = log.catalogue.external(shown.flatten().numpy()).to_list()
    assert (shown >= 0).all()
    assert all((user, film) in low for user, film in zip(np.repeat(users, sources.OWN), films, strict=True))
    for name, (least, most) in sources.WINDOWS.items():
        mined = draw(name, second)
        places = (ranked[:, None] == mined[:, :, None]).int().argmax(2)
        assert mined.shape == (64, sources.OWN)
        assert least <= int(places.min()) <= int(places.max()) < most


def test_a_tally_counts_what_scores_above_what_is_known_and_what_is_hidden(scripts: dict[str, ModuleType]) -> None:
    """Of three negatives one is the row's own positive, one known and harder, one hidden; −1 is no negative."""
    measuring = scripts["measuring"]
    vectors = torch.tensor([[1.0, 0.0], [0.5, 0.0], [0.0, 1.0]])
    entry = measuring.Tally(torch.zeros(3, dtype=torch.int64))
    truth = measuring.Truth(torch.tensor([3, 4]), torch.tensor([5]))
    buyer, positive = torch.tensor([1]), torch.tensor([1])
    measuring.count(entry, vectors[:1], positive, buyer, torch.tensor([0, 1, 2]), vectors, truth)
    measuring.count(entry, vectors[:1], positive, buyer, torch.tensor([[0, -1]]), vectors, truth)
    assert (entry.pairs, entry.harder, entry.harder_engaged, entry.engaged, entry.hidden) == (3, 2, 2, 2, 1)
    assert entry.below == pytest.approx(0.5 - 0.5 + 0.5)


@pytest.mark.parametrize(("name", "file"), [("gowalla", "results.json"), ("ml-1m", "ml-1m.json")])
def test_the_tables_of_the_page_are_what_was_measured(scripts: dict[str, ModuleType], name: str, file: str) -> None:
    """Each data set has its own results, and the page shows them."""
    results = json.loads((FOLDER / file).read_text("utf-8"))
    page = (FOLDER / "README.md").read_text("utf-8")
    assert scripts["run"].with_table(page, name, scripts["run"].table(results["sources"])) == page
    assert len(results["seeds"]) >= 5
