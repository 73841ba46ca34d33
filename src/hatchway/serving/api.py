"""The HTTP API: rows of recommendations as JSON, by the user's own ids."""

from typing import Annotated, Any

import pydantic
from fastapi import APIRouter, Path, Query

from hatchway.errors import UnknownIdError
from hatchway.serving.recommender import Recommender, Row, is_unicode

K_LIMIT = 500
"""The most items that one request may ask for."""

RECENT_LIMIT = 1000
"""The most recent items that one request may name."""

Identifier = pydantic.StrictInt | pydantic.StrictStr


class Recommended(pydantic.BaseModel):
    """One recommended item: its id, the dot product that it was found by, and its title where the catalogue has one."""

    item: int | str
    score: float
    title: str | None


class SimilarItems(pydantic.BaseModel):
    """The row for an item's page, best first; shorter than k only where the catalogue has no more items."""

    item: int | str
    results: list[Recommended]


class RecentItems(pydantic.BaseModel):
    """What a buyer engaged with: the user's own ids, oldest first; and how many items to recommend."""

    model_config = pydantic.ConfigDict(extra="forbid")

    items: list[Identifier] = pydantic.Field(
        min_length=1, max_length=RECENT_LIMIT, description="Ids of the buyer's recent items, oldest first."
    )
    k: int = pydantic.Field(default=10, ge=1, le=K_LIMIT, strict=True, description="How many items to recommend.")
    skip_unknown: bool = pydantic.Field(
        default=False,
        description="Leave out recent items that are not in the catalogue (and list them) instead of answering 404.",
    )


class RecommendedItems(pydantic.BaseModel):
    """The row for a buyer, best first, and the recent items that were left out because the catalogue has them not."""

    results: list[Recommended]
    skipped: list[int | str]


class IndexHealth(pydantic.BaseModel):
    """The index, and the recall that was measured when it was built."""

    kind: str
    vectors: int
    recall: float | None
    recall_at: int


class Health(pydantic.BaseModel):
    """What is being served. ``answers_by`` is ``model`` or ``item vectors``; ``bundle`` identifies the bundle."""

    status: str
    bundle: str
    items: int
    dimension: int
    answers_by: str
    index: IndexHealth
    origin: dict[str, str | int | bool]


class Problem(pydantic.BaseModel):
    """What was wrong; ``error_id`` is there for unexpected errors, and stands in the server's log beside the cause."""

    detail: str
    error_id: str | None = None


def api_routes(recommender: Recommender) -> APIRouter:
    """Return the routes of the API."""
    router = APIRouter(tags=["recommendations"])
    unknown: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "Unknown item"}}
    catalogue = recommender.catalogue
    titles = catalogue.frame["title"] if catalogue.has("title") else None

    def results(row: Row) -> list[Recommended]:
        """Write a row with the user's own ids."""
        named = [None] * len(row.rows) if titles is None else titles[row.rows].to_list()
        ids = catalogue.external(row.rows).to_list()
        return [
            Recommended(item=item, score=score, title=title)
            for item, score, title in zip(ids, row.scores.tolist(), named, strict=True)
        ]

    @router.get("/similar/{item:path}", summary="More like this", responses=unknown)
    def similar(
        item: Annotated[str, Path(description="The id of the item whose page is being looked at.")],
        k: Annotated[int, Query(ge=1, le=K_LIMIT, description="How many items to recommend.")] = 10,
    ) -> SimilarItems:
        """Return the row for an item's page; the item itself is not in it."""
        row = catalogue.row(item)
        return SimilarItems(item=catalogue.ids[row], results=results(recommender.similar(row, k)))

    @router.post("/recommend", summary="For a buyer, from recent items", responses=unknown)
    def recommend(recent: RecentItems) -> RecommendedItems:
        """Return the row for a buyer nobody knows; the recent items are not in it."""
        rows = recommender.find_all(recent.items).tolist()
        known = [row for row in rows if row >= 0]
        unknown = [item for item, row in zip(recent.items, rows, strict=True) if row < 0]
        if not known or (unknown and not recent.skip_unknown):
            named = ", ".join(map(repr, unknown[:5])) + (", …" if len(unknown) > 5 else "")
            raise UnknownIdError(
                f"{len(unknown)} of {len(recent.items)} recent items are not in the catalogue: {named}"
            )
        # Half a character cannot be sent back as it came; it is named as Python writes it.
        skipped = [item if is_unicode(str(item)) else ascii(item) for item in unknown]
        return RecommendedItems(results=results(recommender.recommend(known, recent.k)), skipped=skipped)

    @router.get("/health", summary="What is being served")
    def health() -> Health:
        """Say that the server answers, from which bundle, and how good its index is."""
        manifest = recommender.bundle.manifest
        return Health(
            status="ok",
            bundle=recommender.bundle.digest,
            items=manifest.items,
            dimension=manifest.dimension,
            answers_by="model" if recommender.queries.by_model else "item vectors",
            index=IndexHealth.model_validate(manifest.index, from_attributes=True),
            origin=manifest.origin,
        )

    return router
