"""Items listed after training: from a file into the bundle, into rows of their kind, and over HTTP."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest

from hatchway.config import load_recipe
from hatchway.data.store import write_store
from hatchway.index.bundle import Bundle
from hatchway.job import index_run, train_run
from hatchway.serving.app import create_app

EACH = 25
NEW = "id;material;price\noak-new;wood;15\niron-new;metal;15\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a small model that reads materials, on buyers who stay with wood or with metal."""
    folder = tmp_path_factory.mktemp("new-items")
    generator = np.random.default_rng(3)
    buyers = np.repeat(np.arange(160), 8)
    picks = np.concatenate([generator.choice(EACH, 8, replace=False) for _ in range(160)])
    items = [f"{'wood' if buyer % 2 else 'metal'}-{pick}" for buyer, pick in zip(buyers, picks, strict=True)]
    names = [f"{material}-{number}" for material in ("wood", "metal") for number in range(EACH)]
    catalogue = pl.DataFrame(
        {
            "item": [*names, "wood-unseen"],
            "material": ["wood"] * EACH + ["metal"] * EACH + ["wood"],
            "price": generator.integers(10, 20, 2 * EACH + 1).astype(float),
        }
    )
    store = write_store(folder / "store", pl.DataFrame({"buyer": buyers, "item": items}), catalogue)
    recipe = {
        "model.dimension": 16,
        "model.text_buckets": 64,
        "model.item.categories": '["material"]',
        "model.item.numbers": '["price"]',
        "model.item.id_dropout": 0.5,
        "training.epochs": 15,
        "training.batch": 256,
        "seed": 2,
    }
    train_run(store, folder / "run", load_recipe(None, [f"{name}={value}" for name, value in recipe.items()]))
    return folder / "run"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a table of two new items, whose ids stand in a column of another name."""
    path = tmp_path / "new.csv"
    path.write_text(NEW, encoding="utf-8")
    return path


def of_wood(results: list[dict[str, Any]]) -> int:
    """Count the items of wood in a row."""
    return sum(str(found["item"]).startswith(("wood", "oak")) for found in results)


def test_new_items_stand_in_rows_of_their_kind(hatchway: Callable[..., Any], run: Path, file: Path) -> None:
    """The new item of wood lists wood, and where the wood is listed, it is there and the iron is not."""
    out = file.with_name("bundle")
    said = hatchway("index", run, "--new-items", file, "--map-new", "item=id", "--out", out, "--json").json
    assert (said["items"], said["new_items"], said["index"]["vectors"]) == (53, 2, 53)
    for item in ("oak-new", "wood-unseen"):
        assert of_wood(hatchway("recommend", out, "--item", item, "--k", 10, "--json").json["results"]) == 10
    assert of_wood(hatchway("recommend", out, "--item", "iron-new", "--k", 10, "--json").json["results"]) == 0
    for asked in (("--item", "wood-3"), ("--recent", "oak-new", "--recent", "wood-3"), ("--recent", "wood-unseen")):
        found = hatchway("recommend", out, *asked, "--k", EACH, "--json").json["results"]
        named = {"oak-new", "iron-new"} & {result["item"] for result in found}
        assert named == ({"oak-new"} - set(asked)), asked
        assert of_wood(found) >= 0.8 * EACH, asked  # half of all items are of wood


def test_over_http(run: Path, file: Path) -> None:
    """A new item has a page and a row, stands in the rows of others, and is found by its id."""
    fresh = pl.DataFrame({"item": ["oak-new", "iron-new"], "material": ["wood", "metal"], "price": [15.0, 15.0]})
    app = create_app(index_run(run, out=file.with_name("bundle"), new_items=fresh))

    async def ask() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client:
            paths = ("/similar/oak-new", f"/similar/wood-3?k={EACH}", "/listing/oak-new", "/search?q=oak-new")
            recent = await client.post("/recommend", json={"items": ["oak-new"], "k": 10})
            return [*[await client.get(path) for path in paths], recent]

    similar, beside, listing, found, recommended = asyncio.run(ask())
    assert of_wood(similar.json()["results"]) == 10
    assert "oak-new" in [result["item"] for result in beside.json()["results"]]
    assert listing.status_code == 200
    assert "/listing/wood-" in listing.text
    assert "/listing/oak-new" in found.text
    assert of_wood(recommended.json()["results"]) == 10


def test_file_and_table_give_the_same_bytes(hatchway: Callable[..., Any], run: Path, file: Path) -> None:
    """CSV, Parquet, or a table in memory, each time."""
    fresh = pl.DataFrame({"price": [15, 15], "item": ["oak-new", "iron-new"], "material": ["wood", "metal"]})
    parquet = file.with_suffix(".parquet")
    fresh.write_parquet(parquet)
    first = index_run(run, out=file.with_name("a"), new_items=fresh).digest
    hatchway("index", run, "--new-items", file, "--map-new", "item=id", "--out", file.with_name("b"))
    hatchway("index", run, "--new-items", parquet, "--out", file.with_name("c"))
    assert [Bundle.open(file.with_name(name)).digest for name in ("a", "b", "c")] == [first] * 3
    assert index_run(run, out=file.with_name("d")).digest != first


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (NEW, (), "--map-new item=id"),
        (NEW, ("--map-new", "item=name"), "has no column 'name'"),
        ("item,material\nwood-3,wood\nx,wood\nmetal-1,wood\n", (), "2 of 3 new items are in the catalogue already"),
        ("item,material\nx,wood\nx,metal\n", (), "item 'x' stands in the new items more than once"),
        ("item,material\nx,wood\n,metal\n", (), "new.csv:3, no item (the item is missing): ,metal"),
        ("item,price\nx,dear\n", (), "new.csv:2, number not understood"),
    ],
)
def test_what_cannot_be_used(
    hatchway: Callable[..., Any], run: Path, file: Path, text: str, options: tuple[str, ...], message: str
) -> None:
    """Exit 2 with a sentence, and no bundle."""
    file.write_text(text, encoding="utf-8")
    ended = hatchway("index", run, "--new-items", file, *options, "--out", file.with_name("bundle"))
    assert ended.code == 2
    assert message in ended.err
    assert not file.with_name("bundle").exists()


def test_columns_of_no_file(hatchway: Callable[..., Any], run: Path) -> None:
    """An option that would do nothing is refused."""
    ended = hatchway("index", run, "--map-new", "item=id")
    assert (ended.code, "--new-items FILE" in ended.err) == (2, True)


def test_a_column_that_the_file_lacks(hatchway: Callable[..., Any], run: Path, file: Path) -> None:
    """Counts as missing, and is said; the material alone still places the item."""
    file.write_text("item,material\noak-new,wood\n", encoding="utf-8")
    ended = hatchway("index", run, "--new-items", file, "--out", file.with_name("bundle"), "--json")
    assert "no column price, which the model reads" in ended.err
    assert json.loads((file.with_name("bundle") / "manifest.json").read_bytes())["origin"]["new_items"] == 1
    found = hatchway("recommend", file.with_name("bundle"), "--item", "oak-new", "--json").json["results"]
    assert of_wood(found) == 10
