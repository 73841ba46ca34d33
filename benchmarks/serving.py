"""A row of the service: its time beside the bare search of the index, and the bare product with all item vectors.

Usage: python benchmarks/serving.py [--items 300000] [--rounds 200]

One row of "More like this" (k = 20, 64 dimensions, clustered vectors) from a shop with prices, sellers and categories,
of which 2 % are gone since the bundle was made and 1,000 listings are new. Variants: as it is, narrowed to a category
(one of 20), narrowed to one seller (some forty items), and a whole request through the application, with its JSON and
its log of shown rows. Beside it, how long a post of 100 listings takes until it is on the disk and found.
Writes serving.json beside this file.
"""

import argparse
import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np
import polars as pl
import torch
from interleaved import interleaved
from results import Row, ratio, write

from hatchway.data.catalogue import Catalogue
from hatchway.index.build import IndexSettings
from hatchway.index.bundle import Bundle, BundleContents, write_bundle
from hatchway.index.item_encoder import encoder_weights
from hatchway.index.model_bundle import ServedSettings
from hatchway.serving.app import create_app
from hatchway.serving.filters import Filters
from hatchway.serving.service import Service
from hatchway.towers.build import build_model
from hatchway.towers.features import fit_reading
from hatchway.towers.settings import ItemSettings, ModelSettings

K, DIMENSION, QUERIES, NEW = 20, 64, 64, 1_000


def shop(folder: Path, items: int) -> Bundle:
    """Write the bundle of a shop."""
    generator = np.random.default_rng(7)
    centres = generator.normal(size=(500, DIMENSION)).astype(np.float32)
    kind = generator.integers(0, len(centres), items)
    vectors = centres[kind] + 0.5 * generator.normal(size=(items, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    frame = pl.DataFrame(
        {
            "item": np.arange(items),
            "title": [f"listing number {number}" for number in range(items)],
            "category": pl.Series(kind % 20).cast(pl.String),
            "price": generator.lognormal(4, 1, items).round(2),
            "seller": generator.integers(0, max(1, items // 40), items),
        }
    )
    columns = ItemSettings(id=False, texts=("title",), categories=("category",), numbers=("price",))
    settings = ModelSettings(kind="factorisation", dimension=DIMENSION, text_buckets=4_096, item=columns)
    reading = fit_reading(frame, columns, settings.text_buckets)
    few = Catalogue(frame.head(10))
    encoder = encoder_weights(build_model(few, 3, settings, 0, reading, None))
    served = ServedSettings(model=settings, looked_at_is_engaged=True, reading=reading)
    contents = BundleContents(
        Catalogue(frame), vectors, vectors[:512], settings=served.model_dump(mode="json"), encoder=encoder
    )
    return write_bundle(folder, contents, IndexSettings())


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        bundle = shop(Path(folder) / "bundle", arguments.items)
        service = Service(bundle, state=Path(folder) / "state")
        generator = np.random.default_rng(1)
        gone = generator.choice(arguments.items, arguments.items // 50, replace=False).tolist()
        for begin in range(0, len(gone), 1_000):
            service.post([{"item": item, "gone": True} for item in gone[begin : begin + 1_000]])
        fresh = [
            {"item": arguments.items + number, "title": f"new listing {number}", "category": "3", "price": 9}
            for number in range(NEW)
        ]
        service.post(fresh)
        service.start()
        measure(service, arguments.rounds)
        service.close()


def measure(service: Service, rounds: int) -> None:
    """Time the variants in turns, each call with the next of a few queries."""
    bundle = service.now().bundle
    vectors = torch.from_numpy(bundle.vectors)
    asked = np.random.default_rng(2).integers(0, len(vectors), QUERIES).tolist()
    transport = httpx.ASGITransport(create_app(service))
    client = httpx.AsyncClient(transport=transport, base_url="http://shop")
    loop = asyncio.new_event_loop()
    turn = {"at": 0, "post": 0}

    def row() -> int:
        turn["at"] += 1
        return asked[turn["at"] % QUERIES]

    def similar(filters: Callable[[int], Filters]) -> Callable[[], object]:
        def call() -> object:
            chosen = row()
            return service.now().recommender.similar(chosen, K, filters(chosen))

        return call

    def seller_of(chosen: int) -> str:
        return str(service.now().stock.describe(np.array([chosen]), ("seller",))[0]["seller"])

    def post() -> object:
        turn["post"] += 100
        known = range(turn["post"] - 100, turn["post"])
        return service.post([{"item": item % len(vectors), "price": 5} for item in known])

    variants: dict[str, Callable[[], object]] = {
        "product": lambda: (vectors @ vectors[row()]).topk(K),
        "search": lambda: bundle.index.search(bundle.vectors[[row()]], K),
        "row": similar(lambda _: Filters()),
        "category": similar(lambda _: Filters(categories=("3",))),
        "seller": similar(lambda chosen: Filters(sellers=(seller_of(chosen),))),
        "request": lambda: loop.run_until_complete(client.get(f"/similar/{row()}?k={K}&buyer=b")).raise_for_status(),
        "post": post,
    }
    seconds = interleaved(variants, rounds, warm_up=5)
    loop.run_until_complete(client.aclose())
    loop.close()
    index = f"the bare search of the {bundle.manifest.index.kind} index"
    product = "the product with all item vectors, top 20"
    size = f"N = {len(vectors):,}"
    rows = [
        Row(
            f"a row with 2 % gone and 1,000 new, {size}", index, ratio(seconds, "row", "search"), "at most", None, None
        ),
        Row(
            f"a row with 2 % gone and 1,000 new, {size}",
            product,
            ratio(seconds, "row", "product"),
            "at most",
            None,
            None,
        ),
        Row(f"a row of one category, {size}", product, ratio(seconds, "category", "product"), "at most", None, None),
        Row(f"a row of one seller, {size}", product, ratio(seconds, "seller", "product"), "at most", None, None),
        Row(
            f"a request for a row, in process, {size}",
            product,
            ratio(seconds, "request", "product"),
            "at most",
            None,
            None,
        ),
        Row(
            f"a post of 100 changes, durable, {size}", product, ratio(seconds, "post", "product"), "at most", None, None
        ),
    ]
    write("serving", rows, {f"serving, {size}": seconds})


if __name__ == "__main__":
    main()
