"""The HTTP API: rows of recommendations as JSON, by the user's own ids."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pydantic
from fastapi import APIRouter, Path, Query, Request, Response

from hatchway.errors import SettingsError, UnknownIdError, UsageError
from hatchway.serving.filters import Filters
from hatchway.serving.post_columns import ID_LIMIT, is_unicode
from hatchway.serving.posts import Item
from hatchway.serving.recommender import Row
from hatchway.serving.service import Service
from hatchway.serving.shelf import Shelf

K_LIMIT = 500
"""The most items that one request may ask for."""

RECENT_LIMIT = 1000
"""The most recent items that one request may name."""

NAMES_LIMIT = 50
"""The most categories, or sellers, that one request may name."""

Identifier = pydantic.StrictInt | pydantic.StrictStr
Name = Annotated[str, pydantic.StringConstraints(min_length=1, max_length=2_000)]
Price = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


class Recommended(pydantic.BaseModel):
    """One recommended item: its id, the dot product that it was found by, and its title where the catalogue has one.

    ``alike`` are relists and near-duplicates of it that scored less and are left out of the row for its sake.
    """

    item: int | str
    score: float
    title: str | None
    alike: list[int | str]


class SimilarItems(pydantic.BaseModel):
    """The row for an item's page, best first; shorter than k only where no other item may stand in it."""

    item: int | str
    results: list[Recommended]
    notes: list[str] = pydantic.Field(default=[], description="What was asked for and is not there: unknown sellers.")


class RecentItems(pydantic.BaseModel):
    """What a buyer engaged with, how many items to recommend, and what they are narrowed to."""

    model_config = pydantic.ConfigDict(extra="forbid")

    items: list[Identifier] = pydantic.Field(
        min_length=1, max_length=RECENT_LIMIT, description="Ids of the buyer's recent items, oldest first."
    )
    k: int = pydantic.Field(default=10, ge=1, le=K_LIMIT, strict=True, description="How many items to recommend.")
    skip_unknown: bool = pydantic.Field(
        default=False,
        description="Leave out recent items that are not in the catalogue (and list them) instead of answering 404.",
    )
    category: list[Name] = pydantic.Field(default=[], max_length=NAMES_LIMIT, description="One of these categories.")
    price_min: Price | None = pydantic.Field(default=None, description="At least this price.")
    price_max: Price | None = pydantic.Field(default=None, description="At most this price.")
    seller: list[Identifier] = pydantic.Field(default=[], max_length=NAMES_LIMIT, description="Of these sellers only.")
    not_seller: list[Identifier] = pydantic.Field(
        default=[], max_length=NAMES_LIMIT, description="Of none of these sellers: the buyer's own listings, say."
    )
    collapse: bool = pydantic.Field(default=True, description="One of the items that are alike, not all of them.")
    buyer: Identifier | None = pydantic.Field(default=None, description="Who is shown the row, for the log.")
    session: Identifier | None = pydantic.Field(default=None, description="In which session, for the log.")


class RecommendedItems(pydantic.BaseModel):
    """The row for a buyer, best first, and the recent items that were left out because the catalogue has them not."""

    results: list[Recommended]
    skipped: list[int | str]
    notes: list[str] = pydantic.Field(default=[], description="What was asked for and is not there: unknown sellers.")


class Problem(pydantic.BaseModel):
    """What was wrong; ``error_id`` is there for unexpected errors, and stands in the server's log beside the cause."""

    detail: str
    error_id: str | None = None


_SIMILAR = frozenset(
    "k category price_min price_max seller not_seller own_seller collapse buyer session".split()  # noqa: SIM905
)


def _only(request: Request, allowed: frozenset[str]) -> None:
    """Refuse what is asked by a name that nothing listens to: a misspelt filter must not pass for one that held.

    Raises:
        SettingsError: a name that is not among those allowed.
    """
    for name in request.query_params:
        if name not in allowed:
            raise SettingsError(f"unknown parameter {name!r}; allowed here: {', '.join(sorted(allowed))}")


def api_routes(service: Service) -> APIRouter:
    """Return the routes of the API."""
    router = APIRouter(tags=["recommendations"])
    unknown: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "Unknown item"}}

    @router.get("/similar/{item:path}", summary="More like this", responses=unknown)
    def similar(
        request: Request,
        response: Response,
        item: Annotated[str, Path(description="The id of the item whose page is being looked at.")],
        k: Annotated[int, Query(ge=1, le=K_LIMIT, description="How many items to recommend.")] = 10,
        category: Annotated[list[Name], Query(max_length=NAMES_LIMIT, description="One of these categories.")] = [],  # noqa: B006
        price_min: Annotated[Price | None, Query(description="At least this price.")] = None,
        price_max: Annotated[Price | None, Query(description="At most this price.")] = None,
        seller: Annotated[list[Name], Query(max_length=NAMES_LIMIT, description="Of these sellers only.")] = [],  # noqa: B006
        not_seller: Annotated[list[Name], Query(max_length=NAMES_LIMIT, description="Of none of these.")] = [],  # noqa: B006
        own_seller: Annotated[
            Literal["only", "exclude"] | None, Query(description="Of the item's own seller only, or of others only.")
        ] = None,
        collapse: Annotated[bool, Query(description="One of the items that are alike, not all of them.")] = True,
        buyer: Annotated[str | None, Query(description="Who is shown the row, for the log.")] = None,
        session: Annotated[str | None, Query(description="In which session, for the log.")] = None,
    ) -> SimilarItems:
        """Return the row for an item's page; the item itself is not in it."""
        _only(request, _SIMILAR)
        who = _who(service, buyer, session)
        shelf = service.now()
        row = shelf.stock.row(item)
        filters = Filters(tuple(category), price_min, price_max, tuple(seller), tuple(not_seller))
        filters = narrowed_to_seller(shelf, row, filters, own_seller)
        found = shelf.recommender.similar(row, k, filters, collapse=collapse)
        _shown(service, shelf, found, "similar", request, response, asked=row, who=who)
        asked = shelf.stock.ids(np.array([row]))[0]
        return SimilarItems(item=asked, results=_results(shelf, found), notes=_notes(shelf, seller))

    @router.post("/recommend", summary="For a buyer, from recent items", responses=unknown)
    def recommend(request: Request, response: Response, recent: RecentItems) -> RecommendedItems:
        """Return the row for a buyer nobody knows; the recent items are not in it."""
        who = _who(service, recent.buyer, recent.session)
        shelf = service.now()
        rows = shelf.recommender.find_all(recent.items).tolist()
        known = [row for row in rows if row >= 0]
        unknown = [item for item, row in zip(recent.items, rows, strict=True) if row < 0]
        if not known or (unknown and not recent.skip_unknown):
            named = ", ".join(map(repr, unknown[:5])) + (", …" if len(unknown) > 5 else "")
            raise UnknownIdError(
                f"{len(unknown)} of {len(recent.items)} recent items are not in the catalogue: {named}"
            )
        filters = Filters(
            tuple(_written(name) for name in recent.category),
            recent.price_min,
            recent.price_max,
            tuple(_written(name) for name in recent.seller),
            tuple(_written(name) for name in recent.not_seller),
        )
        found = shelf.recommender.recommend(known, recent.k, filters, collapse=recent.collapse)
        _shown(service, shelf, found, "recommend", request, response, asked=None, who=who)
        # Half a character cannot be sent back as it came; it is named as Python writes it.
        skipped = [item if is_unicode(str(item)) else ascii(item) for item in unknown]
        notes = _notes(shelf, filters.sellers)
        return RecommendedItems(results=_results(shelf, found), skipped=skipped, notes=notes)

    return router


def narrowed_to_seller(shelf: Shelf, row: int, filters: Filters, own_seller: str | None) -> Filters:
    """Narrow a filter to the seller of the item that is looked at, or to the others.

    Args:
        shelf: what is served.
        row: the row number of the item.
        filters: what the row is narrowed to besides.
        own_seller: ``only``, ``exclude``, or None for neither.
    """
    if own_seller is None:
        return filters
    seller = shelf.stock.describe(np.array([row]), ("seller",) if shelf.stock.catalogue.has("seller") else ("item",))
    named = seller[0].get("seller")
    if own_seller == "only":
        # Nobody's name: whoever sells the item is not known, so nothing is theirs.
        return Filters(
            filters.categories, filters.price_min, filters.price_max, ("\0" if named is None else str(named),)
        )
    others = filters.not_sellers if named is None else (*filters.not_sellers, str(named))
    return Filters(filters.categories, filters.price_min, filters.price_max, filters.sellers, others)


def answer_headers(shelf: Shelf, request: str) -> Mapping[str, str]:
    """Return the headers that say which bundle answered, and what the answer is called in the log."""
    return {"Hatchway-Bundle": shelf.digest, "Hatchway-Request": request}


def _notes(shelf: Shelf, sellers: Sequence[str]) -> list[str]:
    """Say which sellers nobody knows: one who lists nothing is no mistake, so the row is empty, but not in silence."""
    return [f"no listing is of the seller {name[:80]!r}" for name in sellers if not shelf.stock.naming.seller.has(name)]


def _results(shelf: Shelf, row: Row) -> list[Recommended]:
    """Write a row with the user's own ids."""
    names = ("item", "title") if shelf.stock.catalogue.has("title") else ("item",)
    others = [other for alike in row.others for other in alike]
    known = shelf.stock.describe(np.array([*row.rows.tolist(), *others], np.int64), names)
    alike = iter([entry["item"] for entry in known[len(row.rows) :]])
    return [
        Recommended(item=entry["item"], score=score, title=entry.get("title"), alike=[next(alike) for _ in represented])
        for entry, score, represented in zip(known, row.scores.tolist(), row.others, strict=False)
    ]


def _shown(
    service: Service,
    shelf: Shelf,
    row: Row,
    place: str,
    request: Request,
    response: Response,
    *,
    asked: int | None,
    who: tuple[Item | None, str | None],
) -> None:
    """Note what is shown, unless only the headers are asked for."""
    if request.scope.get("hatchway.head"):
        return
    noted = service.show(shelf, row, place, asked=asked, buyer=who[0], session=who[1])
    response.headers.update(answer_headers(shelf, noted))


def _who(service: Service, buyer: Item | None, session: Item | None) -> tuple[Item | None, str | None]:
    """Read the ids of a buyer and a session.

    Raises:
        UsageError: one of them cannot be written down.
    """
    for noun, given in (("buyer", buyer), ("session", session)):
        if given is not None and not (1 <= len(str(given)) <= ID_LIMIT and is_unicode(str(given))):
            raise UsageError(f"the {noun} should be an id of 1 to {ID_LIMIT} characters")
    named = None if session is None else str(session)
    if buyer is None or service.settings.buyer_ids == "string":
        return (None if buyer is None else str(buyer)), named
    digits = str(buyer).removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and -(2**63) <= int(buyer) < 2**63):
        raise UsageError("the buyer should be a 64-bit integer, as the store's buyers are")
    return int(buyer), named


def _written(name: Item) -> str:
    """Return a name as text.

    Raises:
        UsageError: it holds half a character.
    """
    if not is_unicode(str(name)):
        raise UsageError("a name of the filter holds half a character (a lone surrogate), which is no Unicode")
    return str(name)
