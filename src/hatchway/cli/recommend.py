"""``hatchway recommend``: one row of recommendations, from a run's bundle."""

from pathlib import Path
from typing import Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit, table
from hatchway.errors import UsageError


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A run with a bundle, or a bundle.")],
    item: Annotated[str | None, typer.Option(help="Id of the item whose page is being looked at.")] = None,
    recent: Annotated[
        list[str] | None,
        typer.Option(help="Id of an item the buyer engaged with; repeat it, oldest first."),
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="How many items to recommend.")] = 10,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Recommend items from a run's bundle.

    For the page of one item (--item), or for a buyer by recent items (--recent, repeated).
    The ids are those of the catalogue. The items asked with are not recommended.
    """
    begin(quiet)
    if (item is None) == (not recent):
        raise UsageError("give either --item ID, or --recent ID once or more often")
    from hatchway.job import open_bundle
    from hatchway.serving.recommender import Recommender

    recommender = Recommender(open_bundle(path))
    catalogue = recommender.catalogue
    if item is not None:
        row = recommender.similar(catalogue.row(item), k)
    else:
        row = recommender.recommend([catalogue.row(identifier) for identifier in recent or ()], k)
    shown = [name for name in ("title", "category", "price") if catalogue.has(name)]
    found = catalogue.frame[row.rows].select("item", *shown).to_dicts()
    results = [
        {"rank": place, "item": known["item"], "score": score, **{name: known[name] for name in shown}}
        for place, (known, score) in enumerate(zip(found, row.scores.tolist(), strict=True), 1)
    ]
    asked = {"item": item} if item is not None else {"recent": recent}
    payload = {"bundle": str(recommender.bundle.path), **asked, "k": k, "results": results}
    lines = [
        [result["rank"], str(result["item"]), result["score"], *(_shown(result[name], name) for name in shown)]
        for result in results
    ]
    emit(payload, table(lines, ["rank", "item", "score", *shown]), json)


def _shown(value: object, column: str) -> object:
    """Write a price as one, with cents; the rest is as it is.

    >>> _shown(1015.6, "price"), _shown(None, "price"), _shown("oak", "title")
    ('1,015.60', None, 'oak')
    """
    return f"{value:,.2f}" if column == "price" and isinstance(value, float) else value
