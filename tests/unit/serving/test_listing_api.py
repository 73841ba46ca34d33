"""Posting listings over HTTP, filters, limits, figures; and nothing that anybody sends is an error of the server."""

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shops import make_shop, shop_frame
from starlette.types import Message

from hatchway.index.bundle import Bundle
from hatchway.serving.app import create_app
from hatchway.serving.meter import Meter
from hatchway.serving.service import Service
from hatchway.serving.settings import ServingSettings

JSON = {"content-type": "application/json"}
ClientOf = Callable[[FastAPI], httpx.Client]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Return the bundle of a shop of sixty listings, one of whose ids has slashes and other letters."""
    frame = shop_frame(60)
    frame[59, "item"] = "a/ü ☂?#/"
    return make_shop(tmp_path_factory.mktemp("shop") / "bundle", frame, day="2026-03-01")


@pytest.fixture
def client(bundle: Bundle, client_of: ClientOf) -> httpx.Client:
    """Return a client of the shop."""
    return client_of(create_app(bundle))


def items(answer: httpx.Response) -> list[str]:
    """Return the ids of a row."""
    assert answer.status_code == 200, answer.text
    return [found["item"] for found in answer.json()["results"]]


def test_posting(client: httpx.Client) -> None:
    """New, changed and gone in one post; found, filtered and left out at once; the figures say so."""
    posted = [
        {"item": "new/one", "title": "sofa", "category": "sofa", "price": 12.5, "seller": "s1"},
        {"item": "i5", "gone": True},
        {"item": "i6", "price": 0},
    ]
    answer = client.post("/listings", json={"listings": posted})
    assert answer.status_code == 200
    assert {name: answer.json()[name] for name in ("new", "changed", "gone")} == {"new": 1, "changed": 1, "gone": 1}
    row = items(client.get("/similar/i0?k=100"))
    assert "new/one" in row
    assert "i5" not in row
    assert "new/one" in items(client.post("/recommend", json={"items": ["i0"], "k": 60}))
    assert len(items(client.get("/similar/new%2Fone?k=10"))) == 10
    assert items(client.get("/similar/i0?price_max=0&k=100")) == ["i6"]
    assert client.get("/health").json()["listings"] == {"new": 1, "gone": 1, "changed": 2, "unplaced": 0}
    figures = client.get("/metrics").text
    for line in ("listings_new 1", "listings_gone 1", "listings_changed 2", "posted_new_total 1", "index_age_days 0"):
        assert f"\nhatchway_{line}\n" in figures
    client.head("/similar/i0")
    assert 'requests_total{method="HEAD",route="similar",status="200"} 1' in client.get("/metrics").text
    page = client.get("/listing/i5").text
    assert "No longer for sale since" in page
    assert "Gone" in client.get("/search?q=i5").text


@pytest.mark.parametrize(
    ("query", "keeps"),
    [
        ("category=sofa", lambda n: n % 5 == 0),
        ("category=sofa&category=desk", lambda n: n % 5 in (0, 1)),
        ("price_min=50", lambda n: 37 * n % 100 >= 50),
        ("price_max=50", lambda n: 37 * n % 100 <= 50),
        ("price_min=20&price_max=22.5", lambda n: 20 <= 37 * n % 100 <= 22.5),
        ("seller=s3", lambda n: n % 7 == 3),
        ("not_seller=s3&not_seller=s4", lambda n: n % 7 not in (3, 4)),
        ("own_seller=only", lambda n: n % 7 == 1),
        ("own_seller=exclude", lambda n: n % 7 != 1),
        ("own_seller=exclude&category=lamp&price_min=10", lambda n: n % 7 != 1 and n % 5 == 2 and 37 * n % 100 >= 10),
        ("seller=s99", lambda n: n > 1000),
    ],
)
def test_filters(client: httpx.Client, query: str, keeps: Callable[[int], bool]) -> None:
    """Everything that fits and nothing else, from the page of i1; the same by page."""
    found = items(client.get(f"/similar/i1?k=500&{query}"))
    wanted = {f"i{number}" for number in range(59) if number != 1 and keeps(number)}
    assert set(found) - {"a/ü ☂?#/"} == wanted
    assert ("a/ü ☂?#/" in found) == keeps(59)
    if "own_seller" not in query:
        body: dict[str, Any] = {"items": ["i1"], "k": 500}
        for name, value in httpx.QueryParams(query).multi_items():
            body.setdefault(name, []).append(value) if not name.startswith("price") else body.update(
                {name: float(value)}
            )
        assert set(items(client.post("/recommend", json=body))) == set(found)
    if query.count("category") < 2 and "seller=s" not in query:
        page = client.get(f"/listing/i1?{query}")
        assert page.status_code == 200
        assert page.text.count('class="card"') == min(12, len(found))


@pytest.mark.parametrize(
    "query",
    ["price_min=NaN", "price_min=-1", "price_max=Infinity", "price_min=x", "own_seller=maybe", "category=", "k=501",
     "price_min=5&price_max=4", "buyer=", f"session={'x' * 300}", "collapse=perhaps", "&".join(["seller=x"] * 51)],
)  # fmt: skip
def test_filters_that_cannot_be_asked(client: httpx.Client, query: str) -> None:
    """422 with a reason; also on the page, where an empty field asks for nothing."""
    answer = client.get(f"/similar/i1?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"]
    if query.startswith(("price", "own")):
        page = client.get(f"/listing/i1?{query}", headers={"accept": "text/html"})
        assert page.status_code == 422
        assert "That cannot be asked" in page.text
    assert client.get("/listing/i1?price_min=&price_max=&category=&own_seller=").status_code == 200


def test_a_category_that_is_not_there_is_named(client: httpx.Client) -> None:
    """422 with the value and what there is; one that was posted since is there. An unknown seller is a note."""
    for answer in (
        client.get("/similar/i1?category=desk&category=Sofas"),
        client.post("/recommend", json={"items": ["i1"], "category": ["desk", "Sofas"]}),
    ):
        assert answer.status_code == 422
        assert answer.json()["detail"].startswith("no item has the category 'Sofas'; there are, among others, 'sofa', ")
    page = client.get("/listing/i1?category=Sofas", headers={"accept": "text/html"})
    assert page.status_code == 422
    assert "no item has the category" in page.text
    posted = {"item": "hut", "title": "a hut", "category": "Sofas", "price": 3}
    assert client.post("/listings", json={"listings": [posted]}).status_code == 200
    assert items(client.get("/similar/i1?category=Sofas")) == ["hut"]
    long = client.get(f"/similar/i1?category={'x' * 1_999}").json()["detail"]
    assert len(long) < 300
    for answer in (
        client.get("/similar/i1?seller=s1&seller=nobody"),
        client.post("/recommend", json={"items": ["i1"], "seller": ["s1", "nobody"]}),
    ):
        assert items(answer)
        assert answer.json()["notes"] == ["no listing is of the seller 'nobody'"]
    assert client.get("/similar/i1?not_seller=nobody&own_seller=only").json()["notes"] == []


def test_a_filter_by_a_column_that_is_not_there(tmp_path: Path, client_of: ClientOf) -> None:
    """The catalogue's columns are named; the page does not offer it."""
    client = client_of(create_app(make_shop(tmp_path / "bundle", shop_frame(9).drop("seller"))))
    answer = client.get("/similar/i1?seller=s1")
    assert answer.status_code == 422
    assert "asks for the seller, and the catalogue has no such column; it has item, title, category" in answer.text
    page = client.get("/listing/i1").text
    assert 'name="own_seller"' not in page
    assert 'name="price_min"' in page


def test_a_refused_post_names_every_offence(client: httpx.Client) -> None:
    """In the shape in which every 422 is; nothing of the post is taken."""
    posted = [{"item": "i5", "gone": True}, {"item": "i6", "price": -1}, {"price": 3}]
    answer = client.post("/listings", json={"listings": posted})
    assert answer.status_code == 422
    assert [offence["loc"] for offence in answer.json()["detail"]] == [
        ["body", "listings", 1, "price"],
        ["body", "listings", 2, "item"],
    ]
    assert "i5" in items(client.get("/similar/i0?k=100"))
    assert client.post("/listings", json={"listings": [{"item": "i5", "gone": True}], "time": -1}).status_code == 422
    assert client.post("/listings", json={"listings": []}).status_code == 422
    ahead = client.post("/listings", json={"listings": [{"item": "i5", "gone": True}], "time": 4_000_000_000})
    assert ahead.status_code == 422
    assert ahead.json()["detail"][0]["loc"] == ["body", "time"]
    assert "hours ahead of the server's clock" in ahead.json()["detail"][0]["msg"]
    assert "i5" in items(client.get("/similar/i0?k=100"))


def test_limits(bundle: Bundle, client_of: ClientOf) -> None:
    """413 for too many listings, a body that says that it is too large, and one that does not say so."""
    service = Service(bundle, settings=ServingSettings(batch_limit=3, body_limit=2_000))
    client = client_of(create_app(service))
    four = {"listings": [{"item": f"i{number}", "gone": True} for number in range(4)]}
    assert client.post("/listings", json=four).status_code == 413
    large = b'{"listings": [{"item": "i1", "title": "' + b"x" * 3_000 + b'"}]}'
    answer = client.post("/listings", content=large, headers=JSON)
    assert (answer.status_code, "larger than 2,000 bytes" in answer.text) == (413, True)

    assert client.post("/listings", content=large, headers={**JSON, "content-length": "x"}).status_code == 413
    assert client.post("/recommend", content=large, headers=JSON).status_code == 413
    assert service.now().stock.gone_since == 0


def test_a_body_in_pieces_is_counted_as_it_comes(bundle: Bundle) -> None:
    """Without a word about its length; no more of it is read than the limit and a piece."""
    app = create_app(Service(bundle, settings=ServingSettings(body_limit=2_000)))
    sent: list[Message] = []
    asked = 0

    async def receive() -> Message:
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": b" " * 1_000, "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/listings", "raw_path": b"/listings", "query_string": b""}
    headers = [(b"content-type", b"application/json")]
    asyncio.run(app({**scope, "headers": headers, "client": ("127.0.0.1", 5), "server": ("shop", 80)}, receive, send))
    assert sent[0]["status"] == 413
    assert asked == 3


def test_who_may_post(bundle: Bundle) -> None:
    """Programs of this machine; no page in a browser; other machines where the settings say so."""

    async def ask(app: FastAPI, host: str, headers: dict[str, str]) -> int:
        transport = httpx.ASGITransport(app, client=(host, 5))
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            return (await client.post("/listings", json={"listings": [{"item": "i1"}]}, headers=headers)).status_code

    closed, open_ = create_app(bundle), create_app(Service(bundle, settings=ServingSettings(writers="anyone")))
    assert asyncio.run(ask(closed, "127.0.0.1", {})) == 200
    assert asyncio.run(ask(closed, "::1", {})) == 200
    assert asyncio.run(ask(closed, "192.0.2.7", {})) == 403
    assert asyncio.run(ask(open_, "192.0.2.7", {})) == 200
    assert asyncio.run(ask(open_, "127.0.0.1", {"origin": "http://evil.example"})) == 403


def test_a_disk_that_is_full_is_said_without_its_place(
    bundle: Bundle, tmp_path: Path, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 with an error id; the log has the place and the cause."""
    service = Service(bundle, state=tmp_path / "state")
    client = client_of(create_app(service))
    client.post("/listings", json={"listings": [{"item": "i1", "price": 3}]})

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    answer = client.post("/listings", json={"listings": [{"item": "i2", "gone": True}]})
    monkeypatch.undo()
    assert answer.status_code == 503
    assert str(tmp_path) not in answer.text
    assert len(answer.json()["error_id"]) == 12
    service.close()


odd_numbers = st.one_of(
    st.integers(-(10**400), 10**400), st.sampled_from([math.nan, math.inf, -0.0, 1e308, 2**63, -(2**63) - 1, True])
)
odd_texts = st.one_of(
    st.text(max_size=8), st.sampled_from(["\ud800", "\0", "i1", "a/ü ☂?#/", "../..", "%2f", "x" * 3000])
)
odd = st.recursive(
    st.one_of(st.none(), odd_numbers, odd_texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)
known = st.sampled_from(["item", "title", "category", "price", "seller", "photo", "listed", "gone", "prise"])
listing = st.one_of(odd, st.dictionaries(known, st.one_of(odd, st.sampled_from(["i1", "i2", 5, None])), max_size=5))
bodies = st.one_of(
    odd,
    st.fixed_dictionaries({"listings": st.lists(listing, max_size=4)}, optional={"time": odd, "ignore_unknown": odd}),
    st.dictionaries(
        st.sampled_from(
            [
                "items",
                "k",
                "skip_unknown",
                "category",
                "price_min",
                "price_max",
                "seller",
                "not_seller",
                "buyer",
                "session",
            ]
        ),
        st.one_of(odd, st.just(["i1"])),
        max_size=6,
    ),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(body=bodies, path=st.sampled_from(["/listings", "/recommend"]))
def test_no_body_is_an_error_of_the_server(client: httpx.Client, body: object, path: str) -> None:
    """Odd JSON, huge numbers, NaN, half characters: taken or refused with JSON that says why, and the shop goes on."""
    answer = client.post(path, content=json.dumps(body).encode("utf-8", "surrogatepass"), headers=JSON)
    assert answer.status_code in (200, 404, 413, 422), answer.text
    assert "detail" in answer.json() or answer.status_code == 200
    assert "Traceback" not in answer.text
    row = client.get("/similar/i9?k=500")
    assert row.status_code == 200
    assert len(row.json()["results"]) >= 50


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    item=st.one_of(st.text(max_size=12), st.sampled_from(["i1", "a/ü ☂?#/", "..", "/", "%", "\0", "i1/"])),
    query=st.dictionaries(
        st.sampled_from(["k", "category", "price_min", "price_max", "seller", "own_seller", "buyer", "collapse", "q"]),
        st.one_of(st.text(max_size=8), st.sampled_from(["5", "nan", "1e400", "-0", "sofa", "only", "9" * 400])),
        max_size=4,
    ),
    path=st.sampled_from(["/similar/", "/listing/", "/photo/", "/search"]),
)
def test_no_address_is_an_error_of_the_server(
    client: httpx.Client, item: str, query: dict[str, str], path: str
) -> None:
    """Whatever stands in the path and the query."""
    quoted = httpx.URL("http://shop", params={"x": item}).query.decode()[2:].replace("+", "%20")
    answer = client.get(path + ("" if path == "/search" else quoted), params=query, headers={"accept": "text/html"})
    assert answer.status_code in (200, 303, 404, 422)
    assert "Traceback" not in answer.text


def test_deep_nesting_and_broken_text_are_refused(client: httpx.Client) -> None:
    """What breaks parsers: a hundred thousand brackets, half a text, bytes that are no UTF-8, two million digits."""
    for content in (b"[" * 100_000, b'{"listings": [', b'{"listings": [{"item": "\xff\xfe"}]}', b"1" * 2_000_000):
        for path in ("/listings", "/recommend"):
            assert client.post(path, content=content, headers=JSON).status_code in (400, 422)


def test_the_meter_counts_in_buckets() -> None:
    """As Prometheus reads them: each bucket has all that is below its bound, the last has everything."""
    meter = Meter()
    for seconds in (0.0005, 0.003, 0.003, 9.0):
        meter.answered("GET", "similar", 200, seconds)
    meter.answered("GET", 'a"b\\', 404, 0.2)
    text = meter.text({"age": ("How old.", 2.0)}, {"digest": "d"})
    for line in (
        'hatchway_request_seconds_bucket{route="similar",le="0.001"} 1',
        'hatchway_request_seconds_bucket{route="similar",le="0.005"} 3',
        'hatchway_request_seconds_bucket{route="similar",le="2.5"} 3',
        'hatchway_request_seconds_bucket{route="similar",le="+Inf"} 4',
        'hatchway_request_seconds_count{route="similar"} 4',
        'hatchway_requests_total{method="GET",route="similar",status="200"} 4',
        'hatchway_requests_total{method="GET",route="a\\"b\\\\",status="404"} 1',
        "# TYPE hatchway_age gauge",
        "hatchway_age 2",
        'hatchway_bundle_info{digest="d"} 1',
    ):
        assert line in text.splitlines(), line
