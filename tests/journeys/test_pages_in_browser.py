"""The pages in a real browser: a visit from the beginning to a row, on a wide screen and on a telephone."""

import importlib.util
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import matplotlib.image
import numpy as np
import polars as pl
import pytest
import uvicorn

from hatchway.data.catalogue import Catalogue
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import BundleContents, write_bundle
from hatchway.serving.app import create_app
from hatchway.serving.listings import PageSettings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, Request

pytestmark = pytest.mark.browser

SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("sofa", "desk", "lamp", "rug")
PAPER = {"light": "rgb(250, 248, 244)", "dark": "rgb(20, 24, 22)"}
CONTRAST = """
() => {
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(part => {
      const c = part / 255
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor
      if (!/, 0\\)$|transparent/.test(colour)) return colour
    }
    return 'rgb(255, 255, 255)'
  }
  const found = []
  for (const element of document.querySelectorAll('h1, h2, h3, p, dt, dd, code, a, button, strong, span, label')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())
    if (!own || element.closest('.hidden, .skip, .badge')) continue
    const [one, two] = [light(getComputedStyle(element).color), light(behind(element))]
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05)
    if (ratio < 4.5) found.push([element.textContent.trim(), ratio])
  }
  return found
}
"""


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Start Chromium without a window; skip where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium; on Debian and Ubuntu: apt-get install chromium")
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("needs playwright; pip install 'hatchway[dev]'")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - may not be there

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a shop of 40 items in four categories; the sofas have photos; items are like those of their category."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "photos").mkdir()
    for number in range(10):
        shade = np.full((30, 40, 3), 20 * number, np.uint8)
        matplotlib.image.imsave(folder / "photos" / f"{number}.png", shade)
    generator = np.random.default_rng(0)
    frame = pl.DataFrame(
        [
            {
                "item": f"{name}/{number}",
                "title": f"{name.title()} number {number}, with a title somewhat longer than the two lines of a card",
                "category": name,
                "price": 10.0 * number + 5,
                "seller": "a" * 60,
                "photo": f"{number}.png" if name == "sofa" else None,
                "engagements": number,
            }
            for name in NAMES
            for number in range(10)
        ]
    )
    vectors = np.repeat(np.eye(4, dtype=np.float32), 10, axis=0) + 0.1 * generator.random((40, 4), np.float32)
    served = {"model": {"kind": "factorisation"}, "looked_at_is_engaged": True}
    contents = BundleContents(Catalogue(frame), vectors, vectors, settings=served)
    bundle = write_bundle(folder / "bundle", contents, IndexSettings())
    app = create_app(bundle, PageSettings(photos=folder / "photos", row=8))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(timeout=30)


Visit = Callable[..., "Page"]


@pytest.fixture
def visit(browser: "Browser", site: str) -> Iterator[Visit]:
    """Return a function that opens a page of the site; whatever the browser complains of fails the test."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(120_000)  # a busy machine is no fault of the page
    page = context.new_page()

    def failed(request: "Request") -> None:
        if request.failure != "net::ERR_ABORTED":  # so end the photos of a page that was left
            complaints.append(f"{request.failure}: {request.url}")

    def begun(request: "Request") -> None:
        if not request.url.startswith((site, "data:")):
            complaints.append(f"asks another host: {request.url}")

    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", failed)
    page.on("request", begun)

    def open_page(path: str) -> "Page":
        page.goto(site + path)
        return page

    yield open_page
    context.close()
    assert complaints == []


def loaded(page: "Page", photo: "Locator") -> None:
    """Wait until a photo is there, 40 pixels wide.

    Asked for again and again from outside: the page's policy forbids what ``wait_for_function`` does, to evaluate text.
    """
    for _ in range(1200):
        if photo.evaluate("image => image.complete && image.naturalWidth") == 40:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"the photo {photo.get_attribute('src')} did not load in two minutes")


def test_a_visit(visit: Visit) -> None:
    """From the beginning by search to a listing, along its row, and back."""
    page = visit("/")
    page.get_by_label("Search by title or id").fill("lamp 3")
    page.get_by_role("button", name="Search").click()
    assert page.get_by_role("heading", level=1).inner_text() == "1 item for “lamp 3”"
    page.get_by_role("link", name="Lamp number 3").click()
    assert page.get_by_role("heading", level=1).inner_text().startswith("Lamp number 3")
    row = page.get_by_role("region", name="More like this").get_by_role("listitem")
    assert row.count() == 8
    assert all(text.startswith("Lamp number") for text in row.locator("h3").all_inner_texts())
    first = row.first.locator("h3").inner_text()
    row.first.get_by_role("link").click()
    assert page.get_by_role("heading", level=1).inner_text() == first
    page.go_back()
    assert page.get_by_role("heading", level=1).inner_text().startswith("Lamp number 3")


def test_photos_and_placeholders_are_seen(visit: Visit) -> None:
    """Sofas show their photos, loaded and 4 by 3; desks a drawing of the same shape."""
    page = visit("/listing/sofa%2F3")
    page.mouse.wheel(0, 2000)  # photos below the fold load when they are near
    shown = page.locator("img")
    assert shown.count() == 9
    for photo in shown.all():
        photo.scroll_into_view_if_needed()
        loaded(page, photo)
    page = visit("/listing/desk/3")
    assert page.locator("img").count() == 0
    boxes = [box for box in (picture.bounding_box() for picture in page.locator(".picture svg").all()) if box]
    assert len(boxes) == 9
    assert all(abs(box["width"] / box["height"] - 4 / 3) < 0.02 for box in boxes)
    assert boxes[0]["width"] > 2 * boxes[1]["width"]


@pytest.mark.parametrize("path", ["/", "/listing/sofa/3?price_max=90", "/search?q=sofa", f"/search?q={'x' * 150}"])
def test_nothing_sticks_out(visit: Visit, path: str) -> None:
    """From the narrowest telephone to a wide screen: no sideways scrolling, and at least two cards side by side."""
    page = visit(path)
    for width in (320, 390, 768, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        tops = page.evaluate("[...document.querySelectorAll('.card')].map(card => card.getBoundingClientRect().top)")
        assert not tops or tops.count(tops[0]) >= 2, width


def test_the_facts_stand_beside_the_picture_or_below(visit: Visit) -> None:
    """Beside it on a wide screen, below it on a telephone."""
    page = visit("/listing/sofa/3")
    for width, below in ((390, True), (1280, False)):
        page.set_viewport_size({"width": width, "height": 900})
        picture, heading = page.locator(".picture").first.bounding_box(), page.locator("h1").bounding_box()
        assert picture is not None
        assert heading is not None
        assert (heading["y"] >= picture["y"] + picture["height"]) == below


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(visit: Visit, scheme: Literal["light", "dark"]) -> None:
    """Every text has a contrast of 4.5 to 1 or more with what is behind it (WCAG 2.2, 1.4.3)."""
    for path in ("/", "/listing/desk/3?category=lamp", "/search?q=zebra"):
        page = visit(path)
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == PAPER[scheme]
        assert page.evaluate(CONTRAST) == []


def test_narrowing_a_row_down(visit: Visit) -> None:
    """By label: category, prices, seller; what was chosen stays chosen, in the address too, and one link undoes it."""
    page = visit("/listing/desk/3")
    form = page.get_by_role("form", name="Narrow the row down")
    form.get_by_label("Category").select_option("sofa")
    form.get_by_label("Price from").fill("25")
    form.get_by_label("Price to").fill("45.5")
    form.get_by_role("button", name="Show").click()
    page.wait_for_url("**category=sofa**")
    prices = page.locator(".card strong").all_inner_texts()
    assert sorted(prices, key=float) == ["25", "35", "45"]
    assert form.get_by_label("Category").input_value() == "sofa"
    assert form.get_by_label("Price to").input_value() == "45.5"
    form.get_by_label("Seller").select_option("Others only")
    form.get_by_role("button", name="Show").press("Enter")
    page.wait_for_url("**own_seller=exclude**")
    assert "Nothing that is for sale fits all of that." in page.locator("main").inner_text()
    form.get_by_role("link", name="Show all").click()
    assert page.get_by_role("region", name="More like this").get_by_role("listitem").count() == 8


def test_by_keyboard(visit: Visit) -> None:
    """The first stop is the link to the content, the search box is the third, and Enter searches."""
    page = visit("/listing/desk/3")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    box = page.locator(".skip").bounding_box()
    assert box is not None
    assert box["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("rug")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=rug")
    assert page.get_by_role("heading", level=1).inner_text() == "10 items for “rug”"
