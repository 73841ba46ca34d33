"""The pages: a listing with its row "More like this", a search box, and nothing from another host."""

import hashlib
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated

import jinja2
import numpy as np
from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from hatchway.serving.listings import PHOTO_TYPES, Listings, PageSettings
from hatchway.serving.recommender import Recommender

_HERE = FilePath(__file__).parent
_CSS = (_HERE / "static" / "hatchway.css").read_text(encoding="utf-8")
_CSS_VERSION = hashlib.sha256(_CSS.encode()).hexdigest()[:12]
_FOUND_LIMIT = 48
_HOME_LIMIT = 24
_HEADERS = {
    # No script at all, and nothing from elsewhere: titles and ids in a catalogue are other people's text.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class Pages:
    """Renders the templates.

    Args:
        recommender: what is served.
        settings: how the pages look.
    """

    def __init__(self, recommender: Recommender, settings: PageSettings) -> None:
        self._manifest = recommender.bundle.manifest
        self._settings = settings
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def render(self, request: Request, template: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
        """Return the page of a template, filled with ``values``."""
        text = self._templates.get_template(template).render(
            base=request.scope.get("root_path", ""),
            css_version=_CSS_VERSION,
            manifest=self._manifest,
            site=self._settings.name,
            **{"q": "", **values},
        )
        return HTMLResponse(text, status, _HEADERS)

    def problem(self, request: Request, status: int, heading: str, detail: str) -> HTMLResponse:
        """Return the page of an error."""
        return self.render(request, "problem.html", {"heading": heading, "detail": detail}, status)


def page_routes(recommender: Recommender, pages: Pages, settings: PageSettings) -> APIRouter:
    """Return the routes of the pages."""
    router = APIRouter(include_in_schema=False)
    catalogue = recommender.catalogue
    listings = Listings(catalogue, settings)

    @router.get("/")
    def home(request: Request) -> Response:
        """Show where one can begin: the items with most engagements."""
        return pages.render(request, "home.html", {"listings": listings.at(listings.popular(_HOME_LIMIT))})

    @router.get("/search")
    def search(request: Request, q: Annotated[str, Query(max_length=200)] = "") -> Response:
        """Show the items that a text finds."""
        if not q.strip():
            return RedirectResponse(f"{request.scope.get('root_path', '')}/", status_code=303)
        rows, total = listings.search(q, _FOUND_LIMIT)
        return pages.render(request, "search.html", {"q": q, "listings": listings.at(rows), "total": total})

    @router.get("/listing/{item:path}")
    def listing(request: Request, item: Annotated[str, Path()]) -> Response:
        """Show one item and its row."""
        row = catalogue.row(item)
        similar = recommender.similar(row, settings.row)
        values = {
            "listing": listings.at(np.array([row]))[0],
            "similar": listings.at(similar.rows, similar.scores),
            "row_length": settings.row,
        }
        return pages.render(request, "listing.html", values)

    @router.get("/photo/{item:path}")
    def photo(item: Annotated[str, Path()]) -> Response:
        """Send the photo of an item."""
        row = catalogue.row(item)
        file = listings.photo_file(catalogue.frame["photo"][row]) if catalogue.has("photo") else None
        if file is None:
            raise HTTPException(404, f"item {item!r} has no photo")
        return FileResponse(
            file, media_type=PHOTO_TYPES[file.suffix.lower()], headers=_HEADERS | {"Cache-Control": "max-age=3600"}
        )

    @router.get("/static/hatchway.css")
    def style() -> Response:
        """Send the style sheet; its address changes with its text, so it may be kept for good."""
        headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
        return Response(_CSS, media_type="text/css", headers=headers)

    return router
