"""``hatchway serve``: the HTTP API and the page, over a run's bundle."""

import contextlib
import logging
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, emit
from hatchway.errors import UsageError


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A run with a bundle, or a bundle.")],
    host: Annotated[str, typer.Option(help="Address to listen on; the default can be reached from here alone.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    photos: Annotated[
        Path | None,
        typer.Option(help="Folder that the catalogue's photo paths start from. [default: the run's store]"),
    ] = None,
    name: Annotated[str, typer.Option(help="What the site is called.")] = "Hatchway",
    currency: Annotated[str, typer.Option(help="What stands before a price, e.g. €.")] = "",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Serve recommendations over HTTP.

    An API, and a page that shows an item and its row "More like this", until interrupted.

    GET /similar/ITEM?k=10, POST /recommend, GET /health and /openapi.json; the page is at /. docs/serving.md has them.
    """
    begin(quiet)
    import uvicorn

    from hatchway.job import open_bundle
    from hatchway.serving.app import create_app
    from hatchway.serving.listings import PageSettings

    settings = PageSettings(name=name, currency=currency, photos=photos if photos is not None else _store_of(path))
    app = create_app(open_bundle(path), settings)
    with _listening(host, port) as listening:
        at = f"[{host}]" if ":" in host else host
        url = f"http://{at}:{listening.getsockname()[1]}/"
        _log_to_stderr(quiet)
        if not _is_loopback(listening):
            logging.getLogger("hatchway").warning(
                "%s can be reached from other machines, and asks nobody who they are", url
            )
        emit({"url": url, "bundle": str(path)}, f"serving {path} at {url} (Ctrl-C ends it)", json)
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
    """Return the store that a run was trained on, where photo paths start; None where there is none."""
    from hatchway.errors import HatchwayError
    from hatchway.training.run_folder import RunFolder

    try:
        run = RunFolder.open(path)
    except HatchwayError:
        return None
    store = path / run.record.store
    return store if store.is_dir() else None


def _log_to_stderr(quiet: bool) -> None:
    """Let the server's own log lines go where all others go."""
    for name in ("uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers = logging.getLogger("hatchway").handlers
        logger.setLevel(logging.WARNING if quiet else logging.INFO)
        logger.propagate = False
