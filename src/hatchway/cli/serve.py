"""``hatchway serve``: the HTTP API and the page, over a run's bundle or the nights' newest."""

import contextlib
import logging
import socket
import sys
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit
from hatchway.errors import UsageError


class Writers(StrEnum):
    """Who may post listings."""

    THIS_MACHINE = "this-machine"
    ANYONE = "anyone"


def run(
    path: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run with a bundle, a bundle, or a folder of nights, which is followed."),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; the default can be reached from here alone.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    photos: Annotated[
        Path | None,
        typer.Option(help="Folder that the catalogue's photo paths start from. [default: the store]"),
    ] = None,
    name: Annotated[str, typer.Option(help="What the site is called.")] = "Hatchway",
    currency: Annotated[str, typer.Option(help="What stands before a price, e.g. €.")] = "",
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where posted listings and shown rows are written down. [default: RUN-serving]"
        ),
    ] = None,
    log_shown: Annotated[bool, typer.Option(help="Write shown rows down, as impressions for tomorrow's log.")] = True,
    writers: Annotated[
        Writers, typer.Option(help="Who may post listings: programs of this machine, or whoever reaches the server.")
    ] = Writers.THIS_MACHINE,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Serve recommendations over HTTP.

    An API, and a page that shows an item and its row "More like this", until interrupted. Of a folder of nights the
    published one is served, and another as soon as it is published, without a failed request.

    GET /similar/ITEM?k=10, POST /recommend, POST /listings (what is gone, what is new), GET /health, /metrics and
    /openapi.json; the page is at /, the nights are at /nights. docs/serving.md has them.
    """
    begin(quiet)
    import uvicorn

    from hatchway.job import open_bundle
    from hatchway.serving.app import create_app
    from hatchway.serving.following import bundle_of, follows_nights
    from hatchway.serving.listings import PageSettings
    from hatchway.serving.service import Service
    from hatchway.serving.settings import ServingSettings

    if photos is not None and not photos.is_dir():
        raise UsageError(f"--photos {photos}: {'a file' if photos.exists() else 'nothing'} is there; name a folder")
    nights = path if follows_nights(path) else None
    store = _store_of(path)
    pages = PageSettings(name=name, currency=currency, photos=photos if photos is not None else store)
    settings = ServingSettings(
        log_rows=log_shown,
        writers="anyone" if writers is Writers.ANYONE else "this machine",
        buyer_ids=_buyer_ids(store),
    )
    bundle = open_bundle(path if nights is None else bundle_of(nights))
    folder = state if state is not None else path.resolve().with_name(f"{path.resolve().name}-serving")
    service = Service(bundle, pages, settings, folder, nights)
    app = create_app(service)
    with closing(service), _listening(host, port) as listening:
        at = f"[{host}]" if ":" in host else host
        url = f"http://{at}:{listening.getsockname()[1]}/"
        _log_to_stderr(quiet)
        if not _is_loopback(listening):
            logging.getLogger("hatchway").warning(
                "%s can be reached from other machines, and asks nobody who they are", url
            )
        payload = {"url": url, "bundle": str(bundle.path), "state": str(folder)}
        emit(payload, f"serving {path} at {url} (Ctrl-C ends it)", json)
        sys.stdout.flush()  # whoever started the server reads the address from a pipe
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=not quiet))
        with contextlib.suppress(KeyboardInterrupt):  # the one way in which a server is meant to end
            server.run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    """Open the socket before anything is said about it, so that a port in use is found out at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)  # whoever reads the address may ask at once; the answer comes when the server runs
    except OSError as error:
        listening.close()
        raise UsageError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another --port (0: any free one)"
        ) from None
    return listening


def _is_loopback(listening: socket.socket) -> bool:
    """Say whether a socket can be reached from this machine alone."""
    import ipaddress

    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def _store_of(path: Path) -> Path | None:
    """Return the store that a run was trained on, or that nights beside it are of; None where there is none."""
    from hatchway.data.store import is_store
    from hatchway.errors import HatchwayError
    from hatchway.training.run_folder import RunFolder

    beside = path.resolve().with_name(path.resolve().name.removesuffix("-nights"))
    if beside != path.resolve() and is_store(beside):
        return beside
    try:
        run = RunFolder.open(path)
    except HatchwayError:
        return None
    store = path / run.record.store
    return store if store.is_dir() else None


def _buyer_ids(store: Path | None) -> "Literal['string', 'integer']":
    """Return the type of a store's buyers, which shown rows are written with; text where there is no store."""
    from hatchway.data.store import Store
    from hatchway.errors import HatchwayError

    try:
        return Store.open(store).manifest.buyer_type if store is not None else "string"
    except HatchwayError:
        return "string"


def _log_to_stderr(quiet: bool) -> None:
    """Let the server's own log lines go where all others go."""
    for name in ("uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers = logging.getLogger("hatchway").handlers
        logger.setLevel(logging.WARNING if quiet else logging.INFO)
        logger.propagate = False
