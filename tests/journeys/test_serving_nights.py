"""Serving a folder of nights: another night under load, the way back, a broken one, and a server that was killed."""

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx
import polars as pl
import pytest
import uvicorn
from shops import make_shop, shop_frame

from hatchway.data.importers.table import import_table
from hatchway.errors import ArtefactError
from hatchway.index.bundle import Bundle
from hatchway.nightly.pointer import NightRecord, point_at, roll_back, write_record
from hatchway.serving.app import create_app
from hatchway.serving.following import bundle_of
from hatchway.serving.service import Service
from hatchway.serving.settings import ServingSettings


def publish(nights: Path, day: str, seed: int, *, broken: bool = False) -> Bundle:
    """Publish a night whose listings, but for one, are of that night alone: ``i0`` and ``2026-03-01/1`` to ``/59``.

    A broken one is so before anything leads to it: a server that had begun to read it would say something else.
    """
    own = pl.format("{}/{}", pl.lit(day), pl.col("item").str.slice(1))
    frame = shop_frame(60).with_columns(item=pl.when(pl.col("item") == "i0").then("item").otherwise(own))
    bundle = make_shop(nights / day / "bundle", frame, seed=seed, day=day)
    if broken:
        vectors = bundle.path / "item_vectors.safetensors"
        vectors.write_bytes(vectors.read_bytes()[:-7])
    (nights / day / "state").mkdir(exist_ok=True)
    write_record(nights / day, NightRecord(day=day, outcome="published", bundle=bundle.digest))
    point_at(nights, day)
    return bundle


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """Run a server of a service in a thread, and give its address."""
    app = create_app(service)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=60)


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(1200):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about in a minute")


class Asking:
    """Threads that ask for rows all the time, and note every answer that is not as it should be."""

    def __init__(self, url: str, days: dict[str, str]) -> None:
        self.url, self.days = url, days
        self.answers, self.wrong = 0, list[object]()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(4)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(timeout=60)

    def _ask(self, number: int) -> None:
        with httpx.Client(base_url=self.url, timeout=60) as client:
            while not self._ended.is_set():
                try:
                    if number % 2:
                        answer = client.get("/similar/i0", params={"k": 10, "category": "sofa"})
                    else:
                        answer = client.post("/recommend", json={"items": ["i0"], "k": 20})
                    day = self.days[answer.headers["Hatchway-Bundle"]]
                    items = [found["item"] for found in answer.json()["results"]]
                    good = answer.status_code == 200 and len(items) == (10 if number % 2 else 20)
                    if not good or not all(item.startswith(day) for item in items):
                        self.wrong.append((answer.status_code, day, items))
                except Exception as error:  # noqa: BLE001 - whatever it is, it is a request that failed
                    self.wrong.append(error)
                self.answers += 1


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """Return what the library logs."""
    monkeypatch.setattr(logging.getLogger("hatchway"), "propagate", True)
    caplog.set_level(logging.INFO, "hatchway")
    return caplog


def test_another_night_without_a_failed_or_mixed_answer(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    """Forward, back, forward past a broken one, and onto one that points nowhere, with four threads asking."""
    nights = tmp_path / "nights"
    bundles = {day: publish(nights, day, seed) for seed, day in enumerate(("2026-03-01", "2026-03-02"))}
    point_at(nights, "2026-03-01")
    settings = ServingSettings(poll_seconds=0.02)
    service = Service(Bundle.open(bundle_of(nights)), None, settings, tmp_path / "state", nights)
    with serving(service) as url, Asking(url, {bundle.digest: day for day, bundle in bundles.items()}) as asking:

        def is_served(day: str) -> bool:
            return service.now().digest == bundles[day].digest

        def some_answers() -> None:
            before = asking.answers
            until(lambda: asking.answers > before + 20)

        some_answers()
        assert is_served("2026-03-01")
        for day in ("2026-03-02", "2026-03-01", "2026-03-02"):
            if day == "2026-03-01":
                assert roll_back(nights) == day
            else:
                point_at(nights, day)
            until(lambda day=day: is_served(day))  # type: ignore[misc]
            some_answers()
        publish(nights, "2026-03-03", 3, broken=True)
        assert service.following is not None
        until(lambda: service.following is not None and service.following.problem is not None)
        some_answers()
        health = httpx.get(f"{url}/health").json()
        assert (health["status"], health["bundle"]) == ("refused", bundles["2026-03-02"].digest)
        assert health["index_age_days"] == 1, "the newest night is a day ahead of what is served"
        point_at(nights, "2026-03-09")
        some_answers()
        point_at(nights, "2026-03-02")
        until(lambda: service.following is not None and service.following.problem is None)
        some_answers()
        metrics = httpx.get(f"{url}/metrics").text
        assert httpx.get(f"{url}/health").json()["status"] == "ok"
        page = httpx.get(f"{url}/nights")
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "2026-03-02" in page.text
    assert asking.wrong == []
    assert asking.answers > 100
    assert log.text.count("is refused, what is served stays: ") == 2
    assert "item_vectors.safetensors has" in log.text
    assert "hatchway_bundle_swaps_total 3\n" in metrics
    assert f'hatchway_bundle_info{{digest="{bundles["2026-03-02"].digest}",day="2026-03-02"}} 1' in metrics
    counted = [
        line for line in metrics.splitlines() if line.startswith('hatchway_requests_total{method="GET",route="similar"')
    ]
    assert len(counted) == 1
    assert 'status="200"' in counted[0]


def test_what_was_shown_is_tomorrows_log(tmp_path: Path) -> None:
    """Asked for over HTTP, served through a swap, written by the thread, and imported as events."""
    nights = tmp_path / "nights"
    bundle = publish(nights, "2026-03-01", 0)
    settings = ServingSettings(flush_seconds=0.05)
    service = Service(Bundle.open(bundle_of(nights)), None, settings, tmp_path / "state", nights)
    with serving(service) as url, httpx.Client(base_url=url, timeout=60) as client:
        first = client.get("/similar/i0", params={"k": 3, "buyer": "ann", "session": "s1"})
        client.head("/similar/i0?buyer=ann")
        client.get("/similar/unknown?buyer=ann")
        client.post("/recommend", json={"items": ["i0"], "k": 2, "buyer": 12})
        client.get("/listing/i0")
    store = import_table(tmp_path / "state" / "served", tmp_path / "store")
    events = store.events().collect().sort("order")
    assert store.manifest.rejected == {}
    assert events.filter(pl.col("buyer") == "ann")["item"].to_list() == [
        found["item"] for found in first.json()["results"]
    ]
    assert events.select("buyer", "event", "session", "position", "query_item", "place").rows() == [
        *[("ann", "impression", "s1", place, "i0", "similar") for place in (1, 2, 3)],
        *[("12", "impression", None, place, None, "recommend") for place in (1, 2)],
    ]
    assert set(events["bundle"]) == {bundle.digest}
    assert events["request"][0] == first.headers["Hatchway-Request"]
    anonymous = pl.read_parquet(tmp_path / "state" / "anonymous", hive_partitioning=False)
    assert (anonymous["place"][0], len(anonymous)) == ("page", 12)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_server_remembers_every_answered_post(tmp_path: Path) -> None:
    """Killed with -9 while listings are posted: what was answered holds after the restart; rows are imported whole."""
    nights = tmp_path / "shop-nights"
    publish(nights, "2026-03-01", 0)
    program = str(Path(sys.executable).with_name("hatchway"))
    command = [program, "serve", str(nights), "--port", "0", "--json", "--quiet"]

    @contextmanager
    def server() -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = "".join(iter(lambda: process.stdout.readline() if process.stdout else "", "}\n"))
            with httpx.Client(base_url=json.loads(said + "}")["url"], timeout=60) as client:
                try:
                    yield process, client
                finally:
                    process.kill()
                    process.communicate()

    gone: list[str] = []
    with server() as (process, client):
        client.get("/similar/i0", params={"k": 5, "buyer": "ann"})
        time.sleep(3)  # shown rows are written every two seconds

        def post() -> None:
            for number in range(1, 50):
                item = f"2026-03-01/{number}"
                try:
                    answer = client.post("/listings", json={"listings": [{"item": item, "gone": True}]})
                except httpx.HTTPError:
                    return
                if answer.status_code == 200:
                    gone.append(item)

        thread = threading.Thread(target=post)
        thread.start()
        until(lambda: len(gone) >= 5)
        process.send_signal(signal.SIGKILL)
        thread.join(timeout=60)
    with server() as (_, client):
        found = [result["item"] for result in client.get("/similar/i0", params={"k": 60}).json()["results"]]
    assert not set(gone) & set(found)
    assert len(found) >= 58 - len(gone)
    assert 59 - len(found) - len(gone) in (0, 1), "the post that was under way may be there, and no other"
    events = import_table(tmp_path / "shop-nights-serving" / "served", tmp_path / "store").events().collect()
    assert len(events) >= 5


def test_a_folder_without_a_published_night(hatchway: Callable[..., Any], tmp_path: Path) -> None:
    """Exit 2, with the command that makes one."""
    (tmp_path / "nights" / "2026-03-01").mkdir(parents=True)
    ended = hatchway("serve", tmp_path / "nights")
    assert (ended.code, "has no published night yet; make one with: hatchway nightly" in ended.err) == (2, True)


def test_a_night_without_its_bundle_is_named(tmp_path: Path) -> None:
    """The remedy is another night, not a run."""
    publish(tmp_path, "2026-03-01", 1)
    publish(tmp_path, "2026-03-02", 2)
    shutil.rmtree(tmp_path / "2026-03-02" / "bundle")
    with pytest.raises(ArtefactError, match=r"2026-03-02.*no bundle any more.*hatchway rollback"):
        bundle_of(tmp_path)
    assert roll_back(tmp_path) == "2026-03-01"
    assert Bundle.open(bundle_of(tmp_path)).manifest.origin["day"] == "2026-03-01"
