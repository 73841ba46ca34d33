"""The part of the API that keeps the service up to date, and says how it does."""

import ipaddress
from typing import Any

import pydantic
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from hatchway.nightly.page import render_nights
from hatchway.serving.service import Service

_NIGHTS_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class PostedListings(pydantic.BaseModel):
    """What happened to listings: each with its ``item``, and the columns that are new or otherwise.

    A listing that the catalogue does not know is new. ``"gone": true`` (or the Unix seconds since when) takes one out
    of every row, ``"gone": null`` brings it back.
    """

    model_config = pydantic.ConfigDict(extra="forbid")

    listings: list[dict[str, Any]] = pydantic.Field(min_length=1)
    time: int | None = pydantic.Field(
        default=None,
        ge=0,
        le=4_102_444_800,
        strict=True,
        description="Unix seconds from which it holds, not in the future; now if absent.",
    )
    ignore_unknown: bool = pydantic.Field(
        default=False, description="Leave out columns that neither the catalogue nor the model knows."
    )


class Taken(pydantic.BaseModel):
    """What a post came to; it is on the disk, and every later request sees it."""

    new: int
    changed: int
    gone: int
    bundle: str


class IndexHealth(pydantic.BaseModel):
    """The index, and the recall that was measured when it was built."""

    kind: str
    vectors: int
    recall: float | None
    recall_at: int


class ListingsHealth(pydantic.BaseModel):
    """What was posted since the bundle was made: new ones, items that are gone, and posts that nothing can place."""

    new: int
    gone: int
    changed: int
    unplaced: int


class Health(pydantic.BaseModel):
    """What is being served. ``answers_by`` is ``model`` or ``item vectors``; ``bundle`` identifies the bundle.

    ``status`` is ``refused`` where the pointer of the nights names a bundle that cannot be served; the one named here
    is served meanwhile.
    """

    status: str
    bundle: str
    items: int
    dimension: int
    answers_by: str
    index: IndexHealth
    origin: dict[str, str | int | bool]
    listings: ListingsHealth
    index_age_days: int | None


def listing_routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["keeping up"])
    refusals: dict[int | str, dict[str, Any]] = {
        403: {"description": "Not from this machine, or from a page in a browser"},
        413: {"description": "More than is taken at once"},
    }

    @router.post("/listings", summary="What is gone, changed or new", responses=refusals)
    def listings(request: Request, posted: PostedListings) -> Taken:
        """Take a batch whole or not at all. What is gone is in no row from then on, what is new is found."""
        _check_writer(service, request)
        if len(posted.listings) > service.settings.batch_limit:
            raise HTTPException(413, f"{len(posted.listings)} listings; at most {service.settings.batch_limit} at once")
        found, shelf = service.post(posted.listings, posted.time, ignore_unknown=posted.ignore_unknown)
        return Taken(new=found.new, changed=found.changed, gone=found.gone, bundle=shelf.digest)

    @router.get("/health", summary="What is being served")
    def health() -> Health:
        """Say that the server answers, from which bundle, and how good its index is."""
        shelf = service.now()
        manifest, stock = shelf.bundle.manifest, shelf.stock
        refused = service.following is not None and service.following.problem is not None
        return Health(
            status="refused" if refused else "ok",
            bundle=shelf.digest,
            items=manifest.items,
            dimension=manifest.dimension,
            answers_by="model" if shelf.queries.by_model else "item vectors",
            index=IndexHealth.model_validate(manifest.index, from_attributes=True),
            origin=manifest.origin,
            listings=ListingsHealth(
                new=len(stock.posted.items),
                gone=stock.gone_since,
                changed=len(stock.changed),
                unplaced=len(stock.unplaced),
            ),
            index_age_days=service.index_age(),
        )

    @router.get("/metrics", summary="Figures for Prometheus")
    def metrics() -> PlainTextResponse:
        """Write requests, latencies, and what is served, in the text format of Prometheus."""
        return PlainTextResponse(service.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    if service.nights is not None:
        folder = service.nights

        @router.get("/nights", include_in_schema=False)
        def nights() -> Response:
            """Show the nights: what was published, what was refused, and the watched numbers."""
            return HTMLResponse(render_nights(folder), headers=_NIGHTS_HEADERS)

    return router


def _check_writer(service: Service, request: Request) -> None:
    """Refuse posts from pages in a browser, and from other machines unless they may.

    A page of another site could otherwise post to a server on its visitor's machine; browsers always say ``Origin``.
    """
    if "origin" in request.headers:
        raise HTTPException(403, "listings are posted by programs, not by pages in a browser (header Origin)")
    if service.settings.writers == "anyone":
        return
    host = request.client.host if request.client is not None else ""
    try:
        near = ipaddress.ip_address(host).is_loopback
    except ValueError:
        near = False
    if not near:
        raise HTTPException(403, "listings are taken from this machine only; start the server with --writers anyone")
