"""The application: the API and the pages over one bundle, and errors that say what the caller can use."""

import logging
import re
import secrets
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hatchway.errors import UnknownIdError
from hatchway.index.bundle import Bundle
from hatchway.serving.api import api_routes
from hatchway.serving.listings import PageSettings
from hatchway.serving.pages import Pages, page_routes
from hatchway.serving.recommender import Recommender

_LOGGER = logging.getLogger("hatchway")

_DESCRIPTION = """Recommendations from one Hatchway bundle, by the ids of your own catalogue.

Scores are raw dot products, as in training: they order one row, and are not to be compared across rows."""


def create_app(bundle: Bundle, settings: PageSettings | None = None) -> FastAPI:
    """Make the application that serves a bundle.

    Everything is read into memory first, so the bundle's folder may be replaced while the application runs.

    Args:
        bundle: what to serve.
        settings: how the pages look.

    Raises:
        ArtefactError: a part of the bundle does not fit the others.
    """
    settings = settings or PageSettings()
    recommender = Recommender(bundle)
    pages = Pages(recommender, settings)
    # FastAPI's own pages about the API load scripts from another host; openapi.json is what tools need.
    app = FastAPI(
        title=settings.name,
        version=version("hatchway"),
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # an id may end with a slash
    )
    app.include_router(api_routes(recommender))
    app.include_router(page_routes(recommender, pages, settings))
    _answer_errors(app, pages)
    app.add_middleware(AnswerHead)
    return app


class AnswerHead:
    """Answers HEAD wherever GET is answered, with the same headers and no body: monitors and link checkers ask so.

    Args:
        app: the application behind it, which knows GET.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, as GET where it is HEAD."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_headers(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, send_headers)


def _answer_errors(app: FastAPI, pages: Pages) -> None:
    """Answer errors with JSON, or with a page where a browser asks for one."""

    def problem(request: Request, status: int, heading: str, detail: str) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return pages.problem(request, status, heading, detail)
        return JSONResponse({"detail": detail}, status)

    @app.exception_handler(UnknownIdError)
    def unknown(request: Request, error: UnknownIdError) -> Response:
        return problem(request, 404, "No such item", str(error))

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        heading = "Nothing here" if error.status_code == 404 else "That did not work"
        response = problem(request, error.status_code, heading, str(error.detail))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        offences = _offences(request, error)
        if "text/html" in request.headers.get("accept", ""):
            said = "; ".join(f"{offence['loc'][-1]}: {offence['msg']}" for offence in offences)
            return pages.problem(request, 422, "That cannot be asked", said)
        return JSONResponse({"detail": offences}, 422)

    @app.exception_handler(Exception)
    def unexpected(request: Request, error: Exception) -> Response:
        error_id = secrets.token_hex(6)
        _LOGGER.error("error %s at %s %s", error_id, request.method, request.url.path, exc_info=error)
        detail = f"something went wrong on the server; its log has the cause under error id {error_id}"
        if "text/html" in request.headers.get("accept", ""):
            return pages.problem(request, 500, "Something went wrong", detail)
        return JSONResponse({"detail": detail, "error_id": error_id}, 500)


def _offences(request: Request, error: RequestValidationError) -> list[dict[str, Any]]:
    """List what is wrong with a request, without the offending input, which need not be a number that JSON knows."""
    is_json = re.match(r"application/([\w.+-]+\+)?json\b", request.headers.get("content-type", ""))
    unread = "The body should be JSON, sent with the header Content-Type: application/json"
    return [
        {
            "loc": list(offence["loc"]),
            "msg": unread if not is_json and tuple(offence["loc"]) == ("body",) else offence["msg"],
            "type": offence["type"],
        }
        for offence in error.errors()
    ]
