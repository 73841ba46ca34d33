"""The HTTP API: rows by external ids, and refusals that say why."""

import json
import logging
import re
from collections.abc import Callable

import httpx
import numpy as np
import polars as pl
import pytest
from fastapi import FastAPI

from hatchway.index.bundle import Bundle
from hatchway.serving.app import create_app
from hatchway.serving.recommender import Recommender


@pytest.fixture
def client(bundle: Bundle, client_of: Callable[[FastAPI], httpx.Client]) -> httpx.Client:
    """Return a client of the shop."""
    return client_of(create_app(bundle))


def test_similar(client: httpx.Client) -> None:
    """The row of item 10, worked out by hand: 50 scores 3, 20 scores 2."""
    answer = client.get("/similar/10", params={"k": 2})
    assert answer.status_code == 200
    assert answer.json() == {
        "item": 10,
        "results": [
            {"item": 50, "score": 3.0, "title": "Sofa, oak", "alike": []},
            {"item": 20, "score": 2.0, "title": "Oak <b>desk</b>", "alike": []},
        ],
        "notes": [],
    }


def test_similar_returns_ten_or_all(client: httpx.Client) -> None:
    """Without k ten are asked for; a catalogue of five has four others, and the item is not among them."""
    for answer in (client.get("/similar/10"), client.get("/similar/10?k=500")):
        assert [found["item"] for found in answer.json()["results"]] == [50, 20, 30, 40]


@pytest.mark.parametrize("item", ["11", "x", "", "10/", "10 20", "%00", "9" * 60, "1e1", "10.0"])
def test_unknown_items_are_404(client: httpx.Client, item: str) -> None:
    """With the id and what ids look like, in JSON."""
    answer = client.get(f"/similar/{item}")
    assert answer.status_code == 404
    assert "is not among the 5 items of the catalogue (integers: 10, 20, 30" in answer.json()["detail"]


@pytest.mark.parametrize("k", ["0", "-1", "501", "2.5", "many", "", "1e3", "NaN", "99999999999999999999"])
def test_bad_k_is_422(client: httpx.Client, k: str) -> None:
    """The offending parameter is named, for both routes."""
    answer = client.get("/similar/10", params={"k": k})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", "k"]
    body = f'{{"items": [10], "k": {k or "null"}}}'
    if k not in ("many", "1e3"):
        answer = client.post("/recommend", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "k"])


def test_a_parameter_that_nothing_listens_to_is_422(client: httpx.Client) -> None:
    """A misspelt filter must not pass for one that held."""
    answer = client.get("/similar/1?pricemax=10")
    assert answer.status_code == 422
    assert "'pricemax'" in answer.text
    assert "price_max" in answer.text


def test_recommend(client: httpx.Client) -> None:
    """From the mean of items 20 and 30, [1.5, 2]: 50 scores 2.5 and 10 scores 1.5; ids may be numbers or their text."""
    for items in ([20, 30], ["20", 30], [30, "20"]):
        answer = client.post("/recommend", json={"items": items, "k": 2})
        assert answer.status_code == 200
        assert answer.json() == {
            "results": [
                {"item": 50, "score": 2.5, "title": "Sofa, oak", "alike": []},
                {"item": 10, "score": 1.5, "title": "Oak bed", "alike": []},
            ],
            "skipped": [],
            "notes": [],
        }


def test_recommend_names_what_is_unknown(client: httpx.Client) -> None:
    """404, unless the caller says that unknown items may be skipped and one is known; then they are listed."""
    answer = client.post("/recommend", json={"items": [20, "gone", 7, 30]})
    assert answer.status_code == 404
    assert answer.json()["detail"] == "2 of 4 recent items are not in the catalogue: 'gone', 7"
    answer = client.post("/recommend", json={"items": [20, "gone", 7, 30], "skip_unknown": True, "k": 1})
    assert answer.status_code == 200
    assert answer.json()["skipped"] == ["gone", 7]
    assert [found["item"] for found in answer.json()["results"]] == [50]
    answer = client.post("/recommend", json={"items": ["gone", 7], "skip_unknown": True})
    assert answer.status_code == 404
    half = client.post(
        "/recommend",
        content='{"items": [20, "\\ud800", 30], "skip_unknown": true, "k": 1}',
        headers={"content-type": "application/json"},
    )
    assert (half.status_code, half.json()["skipped"]) == (200, ["'\\ud800'"])


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"items": []}',
        '{"items": 10}',
        '{"items": [null]}',
        '{"items": [true]}',
        '{"items": [10.5]}',
        '{"items": [[10]]}',
        '{"items": [10], "k": "5"}',
        '{"items": [10], "k": true}',
        '{"items": [10], "kk": 5}',
        '{"items": [10], "k": NaN}',
        '{"items": [NaN]}',
        '{"items": [10]',
        "not json",
        "",
        "[]",
        json.dumps({"items": [10] * 1001}),
    ],
)
def test_bodies_that_are_no_question_are_422(client: httpx.Client, body: str) -> None:
    """Whatever is sent, the answer is JSON that says what is wrong, and never an error of the server."""
    answer = client.post("/recommend", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert all({"loc", "msg", "type"} == set(offence) for offence in answer.json()["detail"])
    assert "Content-Type" not in answer.text


def test_a_body_that_is_not_said_to_be_json_is_told_so(client: httpx.Client) -> None:
    """As curl sends it with -d alone: fine JSON under the content type of a form."""
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = client.post("/recommend", content='{"items": [10]}', headers=form)
    assert answer.status_code == 422
    (offence,) = answer.json()["detail"]
    assert (offence["loc"], "Content-Type: application/json" in offence["msg"]) == (["body"], True)


@pytest.mark.parametrize("item", [10**30, -(10**30), "\ud800", "\x00", "", " 10"])
def test_odd_ids_in_a_body_are_404(client: httpx.Client, item: int | str) -> None:
    """They are nobody's."""
    answer = client.post(
        "/recommend", content=json.dumps({"items": [item]}), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 404


def test_string_ids(
    make_bundle: Callable[[pl.DataFrame, np.ndarray], Bundle], client_of: Callable[[FastAPI], httpx.Client]
) -> None:
    """Slashes, spaces, hashes and other scripts in ids survive the way there and back."""
    ids = ["a/b", "c d", "e#f?g", "Größe/☂/", "/x", "7"]
    vectors = np.eye(6, dtype=np.float32) + 1
    client = client_of(create_app(make_bundle(pl.DataFrame({"item": ids}), vectors)))
    for quoted, item in (
        ("a%2Fb", "a/b"),
        ("a/b", "a/b"),
        ("c%20d", "c d"),
        ("e%23f%3Fg", "e#f?g"),
        ("Gr%C3%B6%C3%9Fe%2F%E2%98%82%2F", "Größe/☂/"),
        ("%2Fx", "/x"),
        ("7", "7"),
    ):
        answer = client.get(f"/similar/{quoted}?k=5")
        assert answer.status_code == 200, quoted
        assert answer.json()["item"] == item
        assert {found["item"] for found in answer.json()["results"]} == set(ids) - {item}
        assert {found["title"] for found in answer.json()["results"]} == {None}
    answer = client.post("/recommend", json={"items": [7, "a/b"]})
    assert {found["item"] for found in answer.json()["results"]} == set(ids) - {"7", "a/b"}


def test_health(client: httpx.Client, bundle: Bundle) -> None:
    """It says what is served."""
    answer = client.get("/health")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ok",
        "bundle": bundle.digest,
        "items": 5,
        "dimension": 2,
        "answers_by": "item vectors",
        "index": {"kind": "flat", "vectors": 5, "recall": 1.0, "recall_at": 5},
        "origin": {"step": 4},
        "listings": {"new": 0, "gone": 0, "changed": 0, "unplaced": 0},
        "index_age_days": None,
    }


def test_openapi_describes_the_api(client: httpx.Client) -> None:
    """The routes, their limits and their refusals, and none of the pages."""
    document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {"/similar/{item}", "/recommend", "/listings", "/health", "/metrics"}
    similar = document["paths"]["/similar/{item}"]["get"]
    k = next(parameter for parameter in similar["parameters"] if parameter["name"] == "k")["schema"]
    assert (k["minimum"], k["maximum"], k["default"]) == (1, 500, 10)
    assert {"200", "404", "422"} <= set(similar["responses"])
    assert "404" not in document["paths"]["/health"]["get"]["responses"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/nowhere"), ("GET", "/docs"), ("GET", "/redoc")])
def test_other_paths_are_404(client: httpx.Client, method: str, path: str) -> None:
    """Also those where FastAPI would show pages that load scripts from elsewhere."""
    answer = client.request(method, path)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})


def test_other_methods_are_405(client: httpx.Client) -> None:
    """And the answer says which are allowed."""
    answer = client.get("/recommend")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_an_unexpected_error_gets_an_id(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller learns the id and nothing else; the log has the id and the cause."""

    def fail(self: Recommender, row: int, k: int, filters: object, *, collapse: bool = True) -> None:
        raise RuntimeError("the secret is /etc/passwd")

    monkeypatch.setattr(Recommender, "similar", fail)
    monkeypatch.setattr(logging.getLogger("hatchway"), "propagate", True)
    answer = client.get("/similar/10")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    error_id = answer.json()["error_id"]
    assert re.fullmatch("[0-9a-f]{12}", error_id)
    assert error_id in caplog.text
    assert "the secret is /etc/passwd" in caplog.text
    page = client.get("/listing/10", headers={"accept": "text/html"})
    assert page.status_code == 500
    assert "secret" not in page.text
    assert re.search("error id [0-9a-f]{12}", page.text)


@pytest.mark.parametrize(
    "path", ["/", "/similar/10", "/health", "/listing/10", "/static/hatchway.css", "/openapi.json"]
)
def test_head_is_answered_as_get_without_the_body(client: httpx.Client, path: str) -> None:
    """Monitors ask so; what only takes POST stays so, and the description names no HEAD."""
    get, head = client.get(path), client.head(path)
    told = {name: value for name, value in get.headers.items() if not name.startswith("hatchway-")}
    assert (head.status_code, dict(head.headers), head.content) == (200, told, b"")
    assert client.head("/similar/11").status_code == 404
    assert client.head("/recommend").status_code == 405
    assert list(client.get("/openapi.json").json()["paths"]["/health"]) == ["get"]
