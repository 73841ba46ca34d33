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
from hatchway.data.store import Store, is_store
from hatchway.errors import ArtefactError, DataError, UnknownIdError, UsageError
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
            ArtefactError: it is not there, a part of it is missing, or the store beside it is not the one it is of.
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
        _check_belongs(folder, about.get("store"))
        return cls(MarketSettings.parse(about["settings"]), int(about["seed"]), listings, buyers)

    def taste(self, buyers: npt.ArrayLike, items: npt.ArrayLike, day: int) -> Float32:
        """Return how much each buyer likes each listing on a day, [n] float32; larger is better.

        Args:
            buyers: [n] buyer ids.
            items: [n] listing ids.
            day: 0 is the first day.

        Raises:
            UnknownIdError: an id is not in the market.
            UsageError: the day is not one of the market's.
        """
        if not 0 <= day < self.settings.days:
            raise UsageError(f"day {day}: the market has days 0 to {self.settings.days - 1}")
        return taste(
            self.buyers, self.listings, _rows(buyers, len(self.buyers), "buyer"), self._listing_rows(items), day
        )

    def same_object(self, first: npt.ArrayLike, second: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Say of each pair of listing ids whether both offer the same object: one relists the other. [n] bool.

        Raises:
            UnknownIdError: an id is not in the market.
        """
        thing = self.listings.thing
        return np.asarray(thing[self._listing_rows(first)] == thing[self._listing_rows(second)])

    def same_model(self, first: npt.ArrayLike, second: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Say of each pair of listing ids whether both offer the same model, whoever sells it. [n] bool.

        Raises:
            UnknownIdError: an id is not in the market.
        """
        model = self.listings.model
        return np.asarray(model[self._listing_rows(first)] == model[self._listing_rows(second)])

    def _listing_rows(self, ids: npt.ArrayLike) -> Int64:
        return _rows(ids, len(self.listings), "listing")


def truth_folder(store: Path) -> Path:
    """Return where the truth of the market in ``store`` lies.

    >>> truth_folder(Path("demo/store")).as_posix()
    'demo/store-truth'
    """
    return store.with_name(f"{store.name}-truth")


def check_truth_target(folder: Path) -> None:
    """Refuse to write a truth over anything that is not one.

    Raises:
        DataError: ``folder`` is a file, or holds something else.
    """
    settle(folder)
    if not folder.exists() or _is_truth(folder) or (folder.is_dir() and not any(folder.iterdir())):
        return
    raise DataError(
        f"the market's truth would go to {folder}, which exists and is no market's truth, and is left as it is; "
        "give the store another name, or move that away first"
    )


def write_truth(market: Market, folder: Path, store: str) -> None:
    """Write the truth of a market, whole or not at all; what lies there is replaced.

    Args:
        market: the market, with its days behind it.
        folder: where to.
        store: digest of the store that holds the market's events and catalogue.
    """
    with replacing_folder(folder) as partial:
        _frame(market.world.listings.models).write_parquet(partial / "models.parquet")
        _frame(market.world.listings).write_parquet(partial / "listings.parquet")
        _frame(market.world.buyers).write_parquet(partial / "buyers.parquet")
        about = {"store": store, "settings": market.world.settings.model_dump(), "seed": market.seed}
        (partial / "market.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def _is_truth(folder: Path) -> bool:
    """Say whether a truth lies in a folder, whole or damaged."""
    try:
        about = json.loads((folder / "market.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and {"settings", "seed"} <= about.keys()


def _check_belongs(folder: Path, store: object) -> None:
    """Hold a truth against the store beside it: a kill, or an import over the market, leaves two that do not belong.

    A truth that was moved away from its store, or that does not say whose it is, is believed.
    """
    beside = folder.with_name(folder.name.removesuffix("-truth"))
    settle(beside)
    if store is None or beside == folder or not is_store(beside):
        return
    found = Store.open(beside).digest
    if found != store:
        raise ArtefactError(
            f"{folder} is the truth of another store than {beside} (digest {str(store)[:12]}…, not {found[:12]}…): one "
            "of the two was written without the other; simulate the market again"
        )


def _rows(ids: npt.ArrayLike, count: int, noun: str) -> Int64:
    """Turn ids, 1 to ``count``, into rows.

    Raises:
        UnknownIdError: one is none of them; as a row it would mean another.
    """
    asked = np.asarray(ids)
    wrong = asked.ravel()
    if asked.dtype.kind in "iuf":
        wrong = wrong[~((wrong >= 1) & (wrong <= count) & (wrong == np.floor(wrong)))]
    if wrong.size:
        raise UnknownIdError(
            f"{noun} {wrong.flat[0]!s} is not in the market; its {noun}s are the integers 1 to {count}"
        )
    return asked.astype(np.int64) - 1


def _frame(record: Any) -> pl.DataFrame:
    """Put the arrays of a dataclass side by side; a matrix becomes a column of arrays."""
    arrays = {field.name: getattr(record, field.name) for field in fields(record)}
    return pl.DataFrame(
        {name: pl.Series(name, array) for name, array in arrays.items() if isinstance(array, np.ndarray)}
    )


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read back what :func:`_frame` laid out."""
    return {column.name: column.to_numpy() for column in pl.read_parquet(path, glob=False)}
