"""The pages: what stands on them, that nothing is loaded from elsewhere, and that other people's text stays text."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import httpx
import numpy as np
import polars as pl
import pytest
from fastapi import FastAPI

from hatchway.index.bundle import Bundle
from hatchway.serving.app import create_app
from hatchway.serving.listings import PageSettings

BROWSER = {"accept": "text/html,application/xhtml+xml"}
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Page(HTMLParser):
    """Reads a page: elements with their attributes and text; refuses tags that do not close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that closes itself, as SVG shapes do."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Check that it is the element opened last."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note text, and what it stands in."""
        if data.strip():
            self.texts.append((self._open[-1] if self._open else "", " ".join(data.split())))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag: str) -> list[str]:
        """Return the texts that stand directly in elements of a kind."""
        return [text for name, text in self.texts if name == tag]


@pytest.fixture
def client(bundle: Bundle, photos: Path, client_of: Callable[[FastAPI], httpx.Client]) -> httpx.Client:
    """Return a client of the shop with its photos."""
    return client_of(create_app(bundle, PageSettings(photos=photos, currency="€", row=3, name="Oak & Teak")))


def test_a_listing_and_its_row(client: httpx.Client) -> None:
    """Title, facts, photo, and three cards in the order of their scores, linked."""
    answer = client.get("/listing/10")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = Page(answer.text)
    assert page.text("title") == ["Oak bed – Oak & Teak"]
    assert page.text("h1") == ["Oak bed"]
    assert page.text("h2") == ["More like this"]
    assert page.text("dd") == ["Ann & Co", "1 March 2026", "3"]
    assert page.text("code") == ["10"]
    assert page.text("h3") == ["Sofa, oak", "Oak <b>desk</b>", "Teak sofa"]
    links = [link["href"] for link in page.all("a") if link.get("href", "") and "/listing/" in str(link["href"])]
    assert links == ["/listing/50", "/listing/20", "/listing/30"]
    assert [image["src"] for image in page.all("img")] == ["/photo/10"]
    assert len([svg for svg in page.all("svg") if svg.get("class") == "placeholder"]) == 3
    assert "€120" in answer.text
    assert "Gone" in answer.text  # item 50, in the row


def test_a_listing_that_is_gone_says_so(client: httpx.Client) -> None:
    """It still has a page and a row."""
    assert "No longer for sale since 2 March 2026." in client.get("/listing/50").text


def test_every_page_stands_alone(client: httpx.Client) -> None:
    """Language, title, one heading, a labelled search box, alt texts; no script, no inline style, no other host."""
    for path in ("/", "/listing/10", "/listing/40", "/search?q=oak", "/search?q=nothing", "/listing/nope", "/nope"):
        answer = client.get(path, headers=BROWSER)
        page = Page(answer.text)
        assert page.all("html") == [{"lang": "en"}]
        assert len(page.all("h1")) == len(page.all("main")) == len(page.text("title")) == 1
        assert page.all("script") == page.all("style") == []
        fields = [*page.all("input"), *page.all("select")]
        assert {label["for"] for label in page.all("label")} == {field["id"] for field in fields}
        assert all("alt" in image for image in page.all("img"))
        assert not [name for _, attributes in page.elements for name in attributes if name.startswith(("on", "style"))]
        for _, attributes in page.elements:
            for name in ("href", "src", "action"):
                assert re.match(r"/(?!/)|#|data:image/svg", attributes.get(name) or "/"), attributes
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
        assert all(after - before <= 1 for before, after in zip([0, *levels], levels, strict=False)), levels


def test_other_peoples_text_stays_text(
    make_bundle: Callable[[pl.DataFrame, np.ndarray], Bundle], client_of: Callable[[FastAPI], httpx.Client]
) -> None:
    """Markup in titles, categories, sellers, ids and searches is shown, not obeyed."""
    evil = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
    frame = pl.DataFrame({"item": [evil, "{{ 7 * 7 }}"]}).with_columns(
        title=pl.col("item"), category=pl.col("item"), seller=pl.col("item"), price=pl.lit(float("nan"))
    )
    client = client_of(create_app(make_bundle(frame, np.eye(2, dtype=np.float32))))
    for path in ("/", f"/listing/{httpx.URL('http://x', params={'q': evil}).query.decode()[2:].replace('+', '%20')}"):
        answer = client.get(path)
        assert answer.status_code == 200
        page = Page(answer.text)
        assert page.all("script") == []
        assert [image for image in page.all("img") if image.get("src") == "x"] == []
        assert "{{ 7 * 7 }}" in answer.text
    found = client.get("/search", params={"q": evil})
    assert Page(found.text).all("script") == []
    assert evil in [field["value"] for field in Page(found.text).all("input")]


def test_the_beginning_shows_what_is_popular(client: httpx.Client) -> None:
    """By engagements; what is gone comes last."""
    assert Page(client.get("/").text).text("h2") == ["Teak sofa", "Oak bed", "Oak <b>desk</b>", "Item 40", "Sofa, oak"]


def test_search(client: httpx.Client) -> None:
    """Found, not found, and nothing asked; the box keeps what was typed."""
    answer = client.get("/search", params={"q": "oak"})
    assert Page(answer.text).text("h1") == ["3 items for “oak”"]
    assert Page(answer.text).text("h2") == ["Sofa, oak", "Oak bed", "Oak <b>desk</b>"]
    assert [field["value"] for field in Page(answer.text).all("input")] == ["oak"]
    assert Page(client.get("/search?q=10").text).text("h1") == ["1 item for “10”"]
    assert Page(client.get("/search?q=zebra").text).text("h1") == ["Nothing found for “zebra”"]
    for nothing in ("/search", "/search?q=", "/search?q=%20%20"):
        answer = client.get(nothing)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert client.get("/search", params={"q": "x" * 201}).status_code == 422


def test_a_long_search_says_what_is_left(
    make_bundle: Callable[[pl.DataFrame, np.ndarray], Bundle], client_of: Callable[[FastAPI], httpx.Client]
) -> None:
    """48 of 1,000 are shown."""
    frame = pl.DataFrame({"item": range(1000)}).with_columns(title=pl.lit("chair"))
    client = client_of(create_app(make_bundle(frame, np.ones((1000, 2), np.float32))))
    answer = client.get("/search?q=chair")
    assert Page(answer.text).text("h1") == ["1,000 items for “chair”"]
    assert len(Page(answer.text).text("h2")) == 48
    assert "The first 48 are shown" in answer.text


def test_errors_are_pages_for_browsers(client: httpx.Client) -> None:
    """With the status, a sentence, and a way back."""
    for path, status, heading in (
        ("/listing/nope", 404, "No such item"),
        ("/similar/nope", 404, "No such item"),
        ("/similar/10?k=0", 422, "That cannot be asked"),
        ("/nope", 404, "Nothing here"),
        ("/recommend", 405, "That did not work"),
        ("/photo/40", 404, "Nothing here"),
    ):
        answer = client.get(path, headers=BROWSER)
        assert answer.status_code == status
        assert Page(answer.text).text("h1") == [heading]
        assert "/" in [link["href"] for link in Page(answer.text).all("a")]


def test_photos(client: httpx.Client) -> None:
    """Those inside the folder, with their type; nothing else."""
    answer = client.get("/photo/10")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
    assert answer.content == b"\xff\xd8 no real photo"
    for path in ("/photo/20", "/photo/30", "/photo/40", "/photo/50", "/photo/60"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert b"secret" not in answer.content


def test_the_style_sheet(client: httpx.Client) -> None:
    """It is where the page says, and may be kept for good, because its address has its hash."""
    href = next(link["href"] for link in Page(client.get("/").text).all("link") if link["rel"] == "stylesheet")
    answer = client.get(str(href))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "immutable" in answer.headers["cache-control"]
    assert "url(" not in answer.text
    assert "@import" not in answer.text


def test_an_empty_catalogue_has_a_page(
    make_bundle: Callable[[pl.DataFrame, np.ndarray], Bundle], client_of: Callable[[FastAPI], httpx.Client]
) -> None:
    """Nothing to show is shown as that; one item alone has an empty row."""
    nothing = pl.DataFrame({"item": pl.Series([], dtype=pl.String)})
    client = client_of(create_app(make_bundle(nothing, np.empty((0, 2), np.float32))))
    assert "The catalogue of this bundle is empty." in client.get("/").text
    assert client.get("/similar/x").status_code == 404
    client = client_of(create_app(make_bundle(pl.DataFrame({"item": ["a"]}), np.ones((1, 2), np.float32))))
    assert "There is no other item for sale." in client.get("/listing/a").text


def test_under_another_path(bundle: Bundle, client_of: Callable[[FastAPI], httpx.Client]) -> None:
    """Mounted inside another application, every link of the page leads to where it is mounted."""
    outer = FastAPI()
    outer.mount("/shop", create_app(bundle))
    answer = client_of(outer).get("/shop/listing/10")
    assert answer.status_code == 200
    page = Page(answer.text)
    places = [link["href"] for link in [*page.all("a"), *page.all("link")]] + [f["action"] for f in page.all("form")]
    assert len(places) > 10
    assert all(str(place).startswith(("/shop/", "#", "data:")) for place in places)


def test_a_time_that_no_calendar_has_breaks_no_page(
    make_bundle: Callable[[pl.DataFrame, np.ndarray], Bundle], client_of: Callable[[FastAPI], httpx.Client]
) -> None:
    """Milliseconds in a store that was written by hand, or a number gone wild: the page says no day."""
    frame = pl.DataFrame({"item": [1, 2], "listed": [1_772_323_200_000, -(2**62)], "gone": [None, 2**62]})
    client = client_of(create_app(make_bundle(frame, np.eye(2, dtype=np.float32))))
    for item in (1, 2):
        assert client.get(f"/listing/{item}", headers=BROWSER).status_code == 200
    assert "Item 1" in client.get("/", headers=BROWSER).text
