"""``hatchway simulate``: make a second-hand furniture market whose true tastes are known."""

from pathlib import Path
from typing import Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, check_place, emit


def run(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="Folder of the store to write; an old one is replaced.")
    ],
    listings: Annotated[int, typer.Option(help="Listings over the whole time, gone ones included.")] = 6_000,
    buyers: Annotated[int, typer.Option(help="Buyers.")] = 2_000,
    days: Annotated[int, typer.Option(help="Days to simulate, from 2026-03-01 on.")] = 14,
    seed: Annotated[int, typer.Option(help="Everything follows from it: the same seed gives the same bytes.")] = 0,
    photos: Annotated[bool, typer.Option(help="Draw a photo of every listing (about 6 kB each).")] = True,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Simulate a furniture market and write its store.

    Listings are put up, sold within days and taken down; buyers with known, drifting tastes browse, save, write to
    sellers and buy; an old recommender decides what they are shown. The truth (who likes what, which listings are the
    same object) goes to the folder STORE-truth, which nothing but tests and experiments reads. docs/market.md has the
    market's rules.
    """
    begin(quiet)
    check_place(store.parent, f"STORE {store}")
    from hatchway.simulation.settings import MarketSettings
    from hatchway.simulation.truth import truth_folder
    from hatchway.simulation.writing import simulate

    settings = MarketSettings.parse({"listings": listings, "buyers": buyers, "days": days})
    written = simulate(store, settings, seed, photos=photos)
    counts = dict(written.events().group_by("event").len().sort("event").collect(engine="streaming").iter_rows())
    payload: dict[str, object] = {
        "store": str(store),
        "truth": str(truth_folder(store)),
        "listings": listings,
        "buyers": buyers,
        "days": days,
        "seed": seed,
        "events": counts,
        "digest": written.digest,
    }
    kinds = ", ".join(f"{count:,} {event}s" for event, count in counts.items())
    text = (
        f"{store}: {written.manifest.events:,} events of {buyers:,} buyers on {listings:,} listings over {days} days\n"
        f"  {kinds}\n"
        f"truth, for tests and experiments only: {truth_folder(store)}"
    )
    emit(payload, text, json)
