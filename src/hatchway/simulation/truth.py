"""The market's truth: what each buyer really likes, and which listings are the same thing. Training never reads it.

It lies in a folder of its own beside the store (``STORE-truth``), for tests and experiments.
"""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.artefacts.atomic import replacing_folder, settle
from hatchway.data.engagements import Float32, Int64
from hatchway.errors import ArtefactError
from hatchway.simulation.buyers import Buyers, taste
from hatchway.simulation.listings import Listings, Models
from hatchway.simulation.market import Market
from hatchway.simulation.settings import MarketSettings


@dataclass(frozen=True, eq=False)
class Truth:
    """What is true of a simulated market; everything is asked by the ids of the store.

    Attributes:
        settings: size and rules of the market.
        seed: its seed.
        listings: the listings; listing id i is row i - 1.
        buyers: the buyers; buyer id i is row i - 1.
    """

    settings: MarketSettings
    seed: int
    listings: Listings
    buyers: Buyers

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Read the truth that lies in ``folder``.

        Raises:
            ArtefactError: it is not there, or a part of it is missing.
        """
        folder = Path(folder)
        settle(folder)
        try:
            about = json.loads((folder / "market.json").read_text(encoding="utf-8"))
            models = Models(**_read(folder / "models.parquet"))
            listings = Listings(models=models, **_read(folder / "listings.parquet"))
            buyers = Buyers(**_read(folder / "buyers.parquet"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtefactError(
                f"{folder} does not hold the truth of a market ({error}); make one with: hatchway simulate"
            ) from error
        return cls(MarketSettings.parse(about["settings"]), int(about["seed"]), listings, buyers)

    def taste(self, buyers: npt.ArrayLike, items: npt.ArrayLike, day: int) -> Float32:
        """Return how much each buyer likes each listing on a day, [n] float32; larger is better.

        Args:
            buyers: [n] buyer ids.
            items: [n] listing ids.
            day: 0 is the first day.
        """
        return taste(self.buyers, self.listings, _rows(buyers), _rows(items), day)

    def same_object(self, first: npt.ArrayLike, second: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Say of each pair of listing ids whether both offer the same object: one relists the other. [n] bool."""
        thing = self.listings.thing
        return np.asarray(thing[_rows(first)] == thing[_rows(second)])

    def same_model(self, first: npt.ArrayLike, second: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Say of each pair of listing ids whether both offer the same model, whoever sells it. [n] bool."""
        model = self.listings.model
        return np.asarray(model[_rows(first)] == model[_rows(second)])


def truth_folder(store: Path) -> Path:
    """Return where the truth of the market in ``store`` lies.

    >>> truth_folder(Path("demo/store")).as_posix()
    'demo/store-truth'
    """
    return store.with_name(f"{store.name}-truth")


def write_truth(market: Market, folder: Path) -> None:
    """Write the truth of a market, whole or not at all."""
    with replacing_folder(folder) as partial:
        _frame(market.world.listings.models).write_parquet(partial / "models.parquet")
        _frame(market.world.listings).write_parquet(partial / "listings.parquet")
        _frame(market.world.buyers).write_parquet(partial / "buyers.parquet")
        about = {"settings": market.world.settings.model_dump(), "seed": market.seed}
        (partial / "market.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def _rows(ids: npt.ArrayLike) -> Int64:
    return np.asarray(ids, np.int64) - 1


def _frame(record: Any) -> pl.DataFrame:
    """Put the arrays of a dataclass side by side; a matrix becomes a column of arrays."""
    arrays = {field.name: getattr(record, field.name) for field in fields(record)}
    return pl.DataFrame(
        {name: pl.Series(name, array) for name, array in arrays.items() if isinstance(array, np.ndarray)}
    )


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read back what :func:`_frame` laid out."""
    return {column.name: column.to_numpy() for column in pl.read_parquet(path, glob=False)}
