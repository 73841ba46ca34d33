"""The application: the API and the pages over one bundle, and errors that say what the caller can use."""

import logging
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hatchway.errors import FailureError, UnknownIdError, UsageError
from hatchway.index.bundle import Bundle
from hatchway.serving.api import api_routes
from hatchway.serving.listing_api import listing_routes
from hatchway.serving.listings import PageSettings
from hatchway.serving.meter import Metered
from hatchway.serving.pages import Pages, page_routes
from hatchway.serving.posts import RefusedPostError
from hatchway.serving.service import Service

_LOGGER = logging.getLogger("hatchway")

_DESCRIPTION = """Recommendations from one Hatchway bundle, by the ids of your own catalogue.

Scores are raw dot products, as in training: they order one row, and are not to be compared across rows."""


def create_app(bundle: Bundle | Service, settings: PageSettings | None = None) -> FastAPI:
    """Make the application that serves a bundle, or whatever a service holds.

    Everything is read into memory first, so the bundle's folder may be replaced while the application runs. What is
    posted to an application over a bundle is forgotten when it ends, and what is shown is not written down; a
    :class:`~hatchway.serving.service.Service` with a state remembers both.

    Args:
        bundle: what to serve.
        settings: how the pages look; a service has its own.

    Raises:
        ArtefactError: a part of the bundle does not fit the others.
    """
    service = bundle if isinstance(bundle, Service) else Service(bundle, settings)
    pages = Pages(service)

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        """Follow the pointer and write what is shown, from the start of the server to its end."""
        del app
        service.start()
        yield
        await run_in_threadpool(service.close)

    # FastAPI's own pages about the API load scripts from another host; openapi.json is what tools need.
    app = FastAPI(
        title=service.pages.name,
        version=version("hatchway"),
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # an id may end with a slash
        lifespan=running,
    )
    app.include_router(api_routes(service))
    app.include_router(listing_routes(service))
    app.include_router(page_routes(service, pages))
    _answer_errors(app, pages)
    _answer_refused_posts(app)
    app.add_middleware(AnswerHead)
    app.add_middleware(LimitBody, limit=service.settings.body_limit)
    app.add_middleware(Metered, meter=service.meter)
    return app


class LimitBody:
    """Answers 413 where the body of a request is larger than anybody needs, before all of it has been read.

    Args:
        app: the application behind it.
        limit: the most bytes.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, and count its bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        detail = f"the body is larger than {self._limit:,} bytes, which is the most that is taken"
        if not said.isdigit() or int(said) > self._limit:
            await JSONResponse({"detail": detail}, 413)(scope, receive, send)
            return
        received = 0

        async def counting() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise HTTPException(413, detail)
            return message

        await self._app(scope, counting, send)


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

        asked = {**scope, "method": "GET", "hatchway.head": True}  # nobody is shown the row
        try:
            await self._app(asked, receive, send_headers)
        finally:
            scope["endpoint"] = asked.get("endpoint")  # for whoever counts requests by it


def _answer_refused_posts(app: FastAPI) -> None:
    """Answer posts of listings that cannot be taken; programs send them, so always with JSON."""

    @app.exception_handler(RefusedPostError)
    def refused(request: Request, error: RefusedPostError) -> Response:
        del request
        offences = [{"loc": ["body", *at], "msg": said, "type": "listing"} for at, said in error.offences]
        return JSONResponse({"detail": offences}, 422)

    @app.exception_handler(FailureError)
    def failed(request: Request, error: FailureError) -> Response:
        error_id = secrets.token_hex(6)
        _LOGGER.error("error %s at %s %s: %s", error_id, request.method, request.url.path, error)
        detail = f"it could not be done, and nothing has changed; the server's log has the cause under {error_id}"
        return JSONResponse({"detail": detail, "error_id": error_id}, 503)


def _answer_errors(app: FastAPI, pages: Pages) -> None:
    """Answer errors with JSON, or with a page where a browser asks for one."""

    def problem(request: Request, status: int, heading: str, detail: str) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return pages.problem(request, status, heading, detail)
        return JSONResponse({"detail": detail}, status)

    @app.exception_handler(UnknownIdError)
    def unknown(request: Request, error: UnknownIdError) -> Response:
        return problem(request, 404, "No such item", str(error))

    @app.exception_handler(UsageError)
    def cannot(request: Request, error: UsageError) -> Response:
        return problem(request, 422, "That cannot be asked", str(error))

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
