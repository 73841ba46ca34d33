"""Makes the run on MovieLens-1M that run.py measures: ratings of 4 and 5 are positives, those below were shown.

Usage: python experiments/negative_sources/movielens.py RATINGS OUT

RATINGS is a Parquet table of all ratings with user_id, item_id, rating and seq, the user's order. Writes OUT/store and
OUT/run. MovieLens has no impressions: an import of it takes every rating, of one star too, for an engagement. Here the
ratings of 1 to 3 become impressions instead, in one session a user, since half of the ratings have no time.
"""

import argparse
from pathlib import Path

import polars as pl
import torch

from hatchway.config import RunSettings, load_recipe
from hatchway.data.splits import SplitSettings
from hatchway.data.store import write_store
from hatchway.job import train_run

RECIPE = Path(__file__).parent.parent.parent / "recipes" / "ml-1m.toml"
ORIGIN = "movielens, shown"
LIKED, HELD_OUT = 4, 0.2


def shown_and_liked(ratings: pl.DataFrame) -> pl.DataFrame:
    """Return ratings as the log of a shop that shows things: events, sessions, and each user's last positives for test.

    The test part is what follows the training part: of each user's P positives the last ⌊P/5⌋, and what the user was
    shown after the last that is trained on.

    Args:
        ratings: columns user_id, item_id, rating (1 to 5) and seq, ascending with time.
    """
    positive = pl.col("rating") >= LIKED
    so_far, all_of_them = positive.cum_sum().over("buyer"), positive.sum().over("buyer")
    trained = all_of_them - (all_of_them * HELD_OUT).floor()
    before_test = so_far <= trained
    last_trained = positive & (so_far == trained)
    shown_after = (last_trained.cum_sum().over("buyer") > 0) & ~positive
    return (
        ratings.sort("user_id", "seq")
        .rename({"user_id": "buyer", "item_id": "item"})
        .with_columns(pl.col("buyer", "item").cast(pl.Int64), session=pl.col("buyer").cast(pl.Int64))
        .select(
            "buyer",
            "item",
            "session",
            pl.when(positive).then(pl.lit("rating")).otherwise(pl.lit("impression")).alias("event"),
            pl.col("rating").cast(pl.Float32),
            pl.when(before_test & ~shown_after).then(pl.lit("train")).otherwise(pl.lit("test")).alias("split"),
        )
    )


def recipe() -> RunSettings:
    """Return the settings of recipes/ml-1m.toml with the log's own split; nothing is chosen, so nothing validates."""
    settings = load_recipe(RECIPE)
    training = settings.training.model_copy(update={"validate_epochs": 0})
    return settings.model_copy(update={"split": SplitSettings(protocol="given"), "training": training})


def main() -> None:
    """Write the store and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ratings", type=Path, help="a Parquet table of the ratings")
    parser.add_argument("out", type=Path, help="the folder of the store and the run")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    store = write_store(options.out / "store", shown_and_liked(pl.read_parquet(options.ratings)), origin=ORIGIN)
    train_run(store, options.out / "run", recipe())


if __name__ == "__main__":
    main()
