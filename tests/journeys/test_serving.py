"""From a trained run to recommendations, through the commands, and over HTTP from a server of its own."""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest

from hatchway.cli.main import main
from hatchway.config import load_recipe
from hatchway.data.store import write_store
from hatchway.job import index_run, train_run

Command = Callable[..., tuple[Any, str]]
TASTES = 3
EACH = 12


def make_run(folder: Path, kind: str) -> Path:
    """Train a small model on a market of three tastes, whose items are ``t0-0`` to ``t2-11``."""
    generator = np.random.default_rng(4)
    buyers = np.repeat(np.arange(150), 8)
    liked = buyers % TASTES
    picks = np.concatenate([generator.choice(EACH, 8, replace=False) for _ in range(150)])
    events = pl.DataFrame({"buyer": buyers, "item": [f"t{a}-{b}" for a, b in zip(liked, picks, strict=True)]})
    items = [f"t{taste}-{number}" for taste in range(TASTES) for number in range(EACH)]
    catalogue = pl.DataFrame(
        {"item": items, "title": [f"Chair {item}" for item in items], "category": [item[:2] for item in items]}
    )
    store = write_store(folder / "store", events, catalogue)
    settings = load_recipe(
        None, [f"model.kind={kind}", "model.dimension=16", "training.epochs=40", "training.batch=256", "seed=2"]
    )
    train_run(store, folder / "run", settings)
    return folder / "run"


@pytest.fixture(scope="module", params=["context", "factorisation"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a trained run with its bundle, of each kind of model."""
    path = make_run(tmp_path_factory.mktemp(request.param), request.param)
    index_run(path)
    return path


@pytest.fixture
def hatchway(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Return a function that runs a command in this process: what it prints (JSON decoded), and its stderr."""
    logger = logging.getLogger("hatchway")
    before = (logger.handlers, logger.level, logger.propagate)

    def command(*arguments: str, code: int = 0) -> tuple[Any, str]:
        monkeypatch.setattr(sys, "argv", ["hatchway", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, said = capsys.readouterr()
        assert (end.value.code or 0) == code, said
        return json.loads(out) if "--json" in arguments and not code else out, said

    yield command
    logger.handlers, logger.level, logger.propagate = before


def tastes(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the tastes of recommended items."""
    return [str(result["item"])[:2] for result in results]


def test_recommend_finds_items_of_the_same_taste(hatchway: Command, run: Path) -> None:
    """For a page and for a buyer, by external ids, without the items asked with."""
    found = hatchway("recommend", str(run), "--item", "t1-3", "--k", "8", "--json")[0]
    assert [result["rank"] for result in found["results"]] == list(range(1, 9))
    assert tastes(found["results"]).count("t1") >= 7
    assert "t1-3" not in [result["item"] for result in found["results"]]
    assert found["results"][0]["title"].startswith("Chair t")
    scores = [result["score"] for result in found["results"]]
    assert scores == sorted(scores, reverse=True)
    found = hatchway("recommend", str(run), "--recent", "t2-0", "--recent", "t2-5", "--k", "5", "--json")[0]
    assert tastes(found["results"]).count("t2") >= 4
    assert not {"t2-0", "t2-5"} & {result["item"] for result in found["results"]}


def test_recommend_as_text(hatchway: Command, run: Path) -> None:
    """A table for people, on stdout; nothing else there."""
    text, _ = hatchway("recommend", str(run), "--item", "t0-1", "--k", "3")
    lines = text.splitlines()
    assert lines[0].split() == ["rank", "item", "score", "title", "category"]
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--item", "t9-9"], "item 't9-9' is not among the 36 items of the catalogue"),
        (["--item", "t0-1", "--k", "0"], "--k"),
        ([], "either --item ID, or --recent ID"),
        (["--item", "t0-1", "--recent", "t0-2"], "either --item ID, or --recent ID"),
    ],
)
def test_what_cannot_be_recommended(hatchway: Command, run: Path, arguments: list[str], message: str) -> None:
    """Exit 2 with a sentence."""
    assert message in hatchway("recommend", str(run), *arguments, code=2)[1]


def test_indexing_twice_gives_the_same_bytes(hatchway: Command, run: Path, tmp_path: Path) -> None:
    """Wherever the bundle is written; and the commands take a bundle in the place of a run."""
    said = hatchway("index", str(run), "--out", str(tmp_path / "bundle"), "--json")[0]
    for part in (run / "bundle").iterdir():
        assert part.read_bytes() == (tmp_path / "bundle" / part.name).read_bytes(), part.name
    by_run = hatchway("recommend", str(run), "--item", "t1-3", "--json")[0]["results"]
    assert hatchway("recommend", said["bundle"], "--item", "t1-3", "--json")[0]["results"] == by_run


def test_a_damaged_bundle_is_refused(hatchway: Command, run: Path, tmp_path: Path) -> None:
    """Exit 3, and the command that mends it; the server does not start with it."""
    hatchway("index", str(run), "--out", str(tmp_path / "bundle"))
    with (tmp_path / "bundle" / "index.safetensors").open("r+b") as file:
        file.truncate(100)
    for command in (["recommend", str(tmp_path / "bundle"), "--item", "t1-3"], ["serve", str(tmp_path / "bundle")]):
        assert "hatchway index RUN" in hatchway(*command, code=3)[1]


def test_no_bundle_yet(hatchway: Command, run: Path, tmp_path: Path) -> None:
    """The command that makes it is named; and a folder that is no run is said to be none."""
    bare = tmp_path / "run"
    bare.mkdir()
    (bare / "run.json").write_bytes((run / "run.json").read_bytes())
    assert f"make it with: hatchway index {bare}" in hatchway("recommend", str(bare), "--item", "t1-3", code=2)[1]
    assert (
        "is not a run or a bundle but a folder of something else; train" in hatchway("serve", str(tmp_path), code=2)[1]
    )


def test_export_agrees_with_the_bundle(hatchway: Command, run: Path, tmp_path: Path) -> None:
    """Vectors with ids, from the run and from its bundle: the same, and the ones that scores come from."""
    for source, target in ((run, "a"), (run / "bundle", "b")):
        said = hatchway("export", str(source), "--out", str(tmp_path / target), "--json")[0]
        assert (said["items"], said["dimension"]) == (36, 16)
    frame = pl.read_parquet(tmp_path / "a" / "item_vectors.parquet")
    assert frame["item"].to_list() == np.load(tmp_path / "a" / "item_ids.npy", allow_pickle=False).tolist()
    vectors = np.load(tmp_path / "a" / "item_vectors.npy", allow_pickle=False)
    np.testing.assert_array_equal(frame["vector"].to_numpy(), vectors)
    for name in ("item_vectors.parquet", "item_vectors.npy", "item_ids.npy"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    if json.loads((run / "run.json").read_bytes())["model"]["kind"] == "factorisation":
        row = frame["item"].to_list().index("t1-3")
        best = hatchway("recommend", str(run), "--item", "t1-3", "--k", "1", "--json")[0]["results"][0]
        assert best["score"] == pytest.approx(np.sort(np.delete(vectors @ vectors[row], row))[-1], rel=1e-5)


@pytest.fixture
def served(hatchway: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run ``serve`` up to the moment when the server would begin to run."""
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: None)  # noqa: ARG005
    return hatchway


def test_serving_is_announced(served: Command, run: Path) -> None:
    """On loopback, silently; on an address that others can reach, with a warning."""
    said, warned = served("serve", str(run), "--port", "0", "--json")
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*/", said["url"])
    assert "other machines" not in warned
    said, warned = served("serve", str(run), "--port", "0", "--host", "0.0.0.0", "--json")  # noqa: S104
    assert "can be reached from other machines" in warned
    text, _ = served("serve", str(run), "--port", "0")
    assert re.fullmatch(rf"serving {run} at http://127\.0\.0\.1:\d+/ \(Ctrl-C ends it\)\n", text)


def test_a_port_in_use(served: Command, run: Path) -> None:
    """Exit 2, with the remedy; and a host that is none of this machine."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert f"cannot listen on 127.0.0.1 port {port}" in served("serve", str(run), "--port", port, code=2)[1]
    assert "cannot listen on 192.0.2.1" in served("serve", str(run), "--host", "192.0.2.1", "--port", "0", code=2)[1]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("run", ["context"], indirect=True)
def test_a_server_of_its_own(hatchway: Command, run: Path, tmp_path: Path) -> None:
    """Answers as the command recommends, outlives its folder, writes no traceback, and ends with 0 at Ctrl-C."""
    hatchway("index", str(run), "--out", str(tmp_path / "bundle"))
    by_command = hatchway("recommend", str(run), "--item", "t1-3", "--k", "8", "--json")[0]["results"]
    program = str(Path(sys.executable).with_name("hatchway"))
    command = [program, "serve", str(tmp_path / "bundle"), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = "".join(iter(lambda: process.stdout.readline() if process.stdout else "", "}\n"))
            url = json.loads(said + "}")["url"]
            with httpx.Client(base_url=url, timeout=60) as client:
                assert client.get("/health").json()["status"] == "ok"
                for part in (tmp_path / "bundle").iterdir():
                    part.unlink()
                by_http = client.get("/similar/t1-3", params={"k": 8}).json()["results"]
                assert [found["item"] for found in by_http] == [found["item"] for found in by_command]
                recent = client.post("/recommend", json={"items": ["t2-0", "t2-5"], "k": 5})
                assert tastes(recent.json()["results"]).count("t2") >= 4
                assert client.get("/similar/t9-9").status_code == 404
                assert client.get("/similar/t1-3?k=0").status_code == 422
                assert "More like this" in client.get("/listing/t1-3").text
                assert client.get("/openapi.json").json()["info"]["title"] == "Hatchway"
            process.send_signal(signal.SIGINT)
            _, log = process.communicate(timeout=60)
            assert process.returncode == 0, log
        finally:
            process.kill()
    assert 'GET /similar/t1-3?k=8 HTTP/1.1" 200' in log
    assert "Traceback" not in log
