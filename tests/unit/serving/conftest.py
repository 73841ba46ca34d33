"""A small shop whose every answer can be worked out by hand."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import polars as pl
import pytest
from fastapi import FastAPI

from hatchway.data.catalogue import Catalogue
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import Bundle, BundleContents, write_bundle

MakeBundle = Callable[[pl.DataFrame, np.ndarray], Bundle]

SHOP = pl.DataFrame(
    {
        "item": [10, 20, 30, 40, 50],
        "title": ["Oak bed", "Oak <b>desk</b>", "Teak sofa", None, "Sofa, oak"],
        "category": ["bed", "desk", "sofa", None, "sofa"],
        "price": [120.0, 9.5, 1250.0, None, 80.0],
        "seller": ["Ann & Co", None, "Bo", None, None],
        "photo": ["bed.jpg", "../secret.jpg", "missing.jpg", None, "notes.txt"],
        "listed": [1772323200, None, None, None, None],
        "gone": pl.Series([None, None, None, None, 1772409600], dtype=pl.Int64),
        "engagements": [3, 1, 9, 0, 9],
    }
)
# Dot products with item 10: 20 has 2, 30 has 1, 40 has -1, 50 has 3.
VECTORS = np.array([[1, 0], [2, 1], [1, 3], [-1, 0], [3, -1]], np.float32)


@pytest.fixture
def make_bundle(tmp_path: Path) -> MakeBundle:
    """Return a function that makes a bundle without a query tower, of any catalogue and vectors."""

    def make(frame: pl.DataFrame, vectors: np.ndarray) -> Bundle:
        contents = BundleContents(
            Catalogue(frame),
            vectors,
            vectors[:3],
            settings={"model": {"kind": "factorisation"}, "looked_at_is_engaged": True},
            origin={"step": 4},
        )
        return write_bundle(tmp_path / "bundle", contents, IndexSettings())

    return make


@pytest.fixture
def bundle(make_bundle: MakeBundle) -> Bundle:
    """Return the bundle of the shop."""
    return make_bundle(SHOP, VECTORS)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Return a folder with one photo, a text file, and a photo that lies outside of it."""
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "bed.jpg").write_bytes(b"\xff\xd8 no real photo")
    (folder / "notes.txt").write_text("no photo", encoding="utf-8")
    (tmp_path / "secret.jpg").write_bytes(b"\xff\xd8 secret")
    return folder


class InProcess(httpx.BaseTransport):
    """Hands requests to an application in this process; an error in it is what a server would answer."""

    def __init__(self, app: FastAPI) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Ask the application once."""

        async def ask() -> httpx.Response:
            answer = await self._transport.handle_async_request(request)
            return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

        return asyncio.run(ask())


@pytest.fixture
def client_of() -> Callable[[FastAPI], httpx.Client]:
    """Return a function that makes a client of an application."""
    return lambda app: httpx.Client(transport=InProcess(app), base_url="http://shop")
