"""The pages: a listing with its row "More like this", a search box, and nothing from another host."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path as FilePath
from typing import Annotated, Literal
from urllib.parse import urlencode

import jinja2
import numpy as np
from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from hatchway.errors import UsageError
from hatchway.serving.api import answer_headers, narrowed_to_seller
from hatchway.serving.filters import Filters
from hatchway.serving.listings import PHOTO_TYPES
from hatchway.serving.service import Service
from hatchway.serving.shelf import Shelf

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
        service: what is served.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def render(
        self,
        request: Request,
        template: str,
        values: Mapping[str, object],
        shelf: Shelf | None = None,
        status: int = 200,
    ) -> HTMLResponse:
        """Return the page of a template, filled with ``values``, and with facts of the shelf that they are from."""
        shelf = shelf or self._service.now()
        text = self._templates.get_template(template).render(
            base=request.scope.get("root_path", ""),
            css_version=_CSS_VERSION,
            manifest=shelf.bundle.manifest,
            stock=shelf.stock,
            has_nights=self._service.nights is not None,
            site=self._service.pages.name,
            **{"q": "", **values},
        )
        return HTMLResponse(text, status, _HEADERS)

    def problem(self, request: Request, status: int, heading: str, detail: str) -> HTMLResponse:
        """Return the page of an error."""
        return self.render(request, "problem.html", {"heading": heading, "detail": detail}, status=status)


def page_routes(service: Service, pages: Pages) -> APIRouter:
    """Return the routes of the pages."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    def home(request: Request) -> Response:
        """Show where one can begin: the items with most engagements."""
        shelf = service.now()
        shown = shelf.listings.at(shelf.listings.popular(_HOME_LIMIT))
        return pages.render(request, "home.html", {"listings": shown}, shelf)

    @router.get("/search")
    def search(request: Request, q: Annotated[str, Query(max_length=200)] = "") -> Response:
        """Show the items that a text finds."""
        if not q.strip():
            return RedirectResponse(f"{request.scope.get('root_path', '')}/", status_code=303)
        shelf = service.now()
        rows, total = shelf.listings.search(q, _FOUND_LIMIT)
        values = {"q": q, "listings": shelf.listings.at(rows), "total": total}
        return pages.render(request, "search.html", values, shelf)

    @router.get("/listing/{item:path}")
    def listing(
        request: Request,
        item: Annotated[str, Path()],
        category: Annotated[str, Query(max_length=2_000)] = "",
        price_min: Annotated[str, Query(max_length=40)] = "",
        price_max: Annotated[str, Query(max_length=40)] = "",
        own_seller: Annotated[Literal["", "only", "exclude"], Query()] = "",
    ) -> Response:
        """Show one item and its row, narrowed to what the form says."""
        shelf = service.now()
        row = shelf.stock.row(item)
        filters = Filters((category,) if category else (), _price(price_min), _price(price_max))
        filters = narrowed_to_seller(shelf, row, filters, own_seller or None)
        similar = shelf.recommender.similar(row, service.pages.row, filters)
        asked = Asked(category, price_min.strip(), price_max.strip(), own_seller)
        values = {
            "listing": shelf.listings.at(np.array([row]))[0],
            "similar": shelf.listings.at(similar.rows, similar.scores, similar.others),
            "narrowing": _narrowing(shelf, asked),
            "query": asked.query(service.pages.row),
        }
        response = pages.render(request, "listing.html", values, shelf)
        if not request.scope.get("hatchway.head"):
            noted = service.show(shelf, similar, "page", asked=row, buyer=None, session=None)
            response.headers.update(answer_headers(shelf, noted))
        return response

    @router.get("/photo/{item:path}")
    def photo(item: Annotated[str, Path()]) -> Response:
        """Send the photo of an item."""
        shelf = service.now()
        row = shelf.stock.row(item)
        (known,) = shelf.stock.describe(np.array([row]))
        file = shelf.listings.photo_file(known.get("photo"))
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


@dataclass(frozen=True)
class Asked:
    """What was chosen in the form above a row, as text; empty for whatever was not."""

    category: str
    price_min: str
    price_max: str
    own_seller: str

    def query(self, k: int) -> str:
        """Write it as the query of the API."""
        chosen = {name: value for name, value in asdict(self).items() if value}
        return urlencode({"k": k, **chosen})


@dataclass(frozen=True)
class Narrowing:
    """What the form above a row shows.

    Attributes:
        categories: what one can choose from; none where the catalogue has too many, or no such column.
        by_price: whether there is a column of prices.
        by_seller: whether there is a column of sellers.
        asked: what was chosen.
    """

    categories: tuple[str, ...]
    by_price: bool
    by_seller: bool
    asked: Asked

    @property
    def possible(self) -> bool:
        """Whether there is anything to choose."""
        return bool(self.categories) or self.by_price or self.by_seller

    @property
    def narrowed(self) -> bool:
        """Whether anything was chosen."""
        return any(astuple(self.asked))


def _narrowing(shelf: Shelf, asked: Asked) -> Narrowing:
    """Say what the row can be narrowed to."""
    catalogue = shelf.stock.catalogue
    return Narrowing(shelf.words.categories, catalogue.has("price"), catalogue.has("seller"), asked)


def _price(text: str) -> float | None:
    """Read a price of the form; an empty field asks for nothing.

    Raises:
        UsageError: it is no price.
    """
    if not text.strip():
        return None
    try:
        price = float(text.strip())
    except ValueError:
        price = -1.0
    if not 0 <= price < 1e300:  # a NaN is in no range
        raise UsageError(f"a price of {text!r} cannot be asked for; prices are numbers from 0, as in 120 or 9.50")
    return price
