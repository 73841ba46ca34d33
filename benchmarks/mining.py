"""The 500 nearest neighbours of queries, as mining asks for them: exact and approximate search against FAISS Flat.

Usage: python benchmarks/mining.py [--rounds 9] [--items 1000000] [--bundle FOLDER]

Synthetic vectors of 64 dimensions and length 1, around 3,000 centres of unequal sizes; and, with ``--bundle``, the
items and queries of a trained model. Each variant answers the same 256 queries a round, plain PyTorch the first 64.
The approximate index looks into as many cells as recall@500 = .98 takes on some queries, and its recall is measured on
others. Writes mining.json beside this file. ``--memory Q`` streams Q queries in this process, prints their extra peak
memory, and ends; the script calls itself so.
"""

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import numpy.typing as npt
import torch
from interleaved import interleaved
from results import Row, medians, ratio, write

from hatchway.index.build import IndexFacts, IndexSettings, build_index
from hatchway.index.bundle import Bundle
from hatchway.index.exact import ExactIndex
from hatchway.index.model_bundle import queries_of
from hatchway.index.streaming import neighbours
from hatchway.randomness import stream

WIDTH, CENTRES, SPREAD, K = 64, 3_000, 0.35, 500
QUERIES, FEWER, SAMPLED = 256, 64, 1_024
SMALLER, BLOCK, FEW, MANY = 300_000, 2_048, 16_384, 131_072

PLAIN = "plain PyTorch, 64 queries"

Vectors = npt.NDArray[np.float32]


def clustered(items: int, queries: int) -> tuple[Vectors, Vectors]:
    """Draw item and query vectors of length 1 around the same centres."""
    random = stream(1, "mining benchmark")
    centres = random.standard_normal((CENTRES, WIDTH)).astype(np.float32)
    shares = random.dirichlet(np.full(CENTRES, 2.0))

    def draw(count: int) -> Vectors:
        drawn = centres[random.choice(CENTRES, count, p=shares)]
        drawn += np.float32(SPREAD) * random.standard_normal((count, WIDTH), np.float32)
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        return drawn

    return draw(items), draw(queries)


def trained(folder: Path) -> tuple[Vectors, Vectors]:
    """Return the item vectors of a bundle, and the queries of sampled items' pages."""
    bundle = Bundle.open(folder)
    rows = stream(1, "mining benchmark").integers(len(bundle.catalogue), size=QUERIES + SAMPLED)
    return bundle.vectors, queries_of(bundle).similar(rows)


def plain(items: torch.Tensor, queries: Vectors) -> object:
    """Search by one product with all items and a choice of the best."""
    return torch.topk(torch.from_numpy(queries) @ items.T, K, dim=1)


def peak_memory(queries: int) -> float:
    """Stream queries over a smaller catalogue, and return the process's extra peak memory in MiB."""
    items, asked = clustered(20_000, BLOCK)
    index = ExactIndex(items)
    index.search(asked[:QUERIES], K)
    gc.collect()

    def status(field: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field))

    def stream_of(blocks: int) -> None:
        for _ in neighbours(index, (asked for _ in range(blocks)), K):
            pass

    before = status("VmRSS")
    stream_of(16)  # what the C library keeps for its next use is there then
    Path("/proc/self/clear_refs").write_text("5")
    stream_of(queries // BLOCK)
    return (status("VmHWM") - before) / 1024


def memory_rows() -> list[Row]:
    """Compare the memory of many queries with that of few, each in a fresh process."""
    found = {}
    for queries in (FEW, MANY):
        command = [sys.executable, __file__, "--memory", str(queries)]
        found[queries] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return [
        Row(
            f"exact search, extra peak memory, {MANY:,} queries",
            f"the same, {FEW:,} queries",
            float(f"{found[MANY] / found[FEW]:.3g}"),
            "at most",
            1.25,
            1.0,
        ),
        Row(f"exact search, extra peak memory, {MANY:,} queries", "nothing", round(found[MANY], 1), unit="MiB"),
    ]


def variants(items: Vectors, queries: Vectors) -> dict[str, Callable[[], object]]:
    """Return FAISS Flat and the ways of exact search over the same items."""
    flat = faiss.IndexFlatIP(items.shape[1])
    flat.add(items)
    exact, float32, whole = ExactIndex(items), ExactIndex(items, products="float32"), torch.from_numpy(items)
    return {
        "FAISS Flat": lambda: flat.search(queries, K),
        "exact": lambda: exact.search(queries, K),
        "exact, float32 products": lambda: float32.search(queries, K),
        PLAIN: lambda: plain(whole, queries[:FEWER]),
    }


def flat_rows(of: str, seconds: dict[str, list[float]], required: float | None = 1.4) -> list[Row]:
    """Compare exact search with FAISS Flat, and with plain PyTorch, query by query."""
    flat = f"FAISS Flat, {of}"
    each = {name: [t / (FEWER if name == PLAIN else QUERIES) for t in times] for name, times in seconds.items()}
    quick, slow = "exact", "exact, float32 products"
    return [
        Row(flat, "exact search", ratio(each, "FAISS Flat", quick), "at least", required, 3),
        Row(
            f"FAISS Flat, {of}",
            "exact search, float32 products",
            ratio(each, "FAISS Flat", slow),
            "at least",
            required,
            3,
        ),
        Row(f"PyTorch, product and topk, {of}", "exact search", ratio(each, PLAIN, quick), "at least"),
    ]


def approximate_rows(of: str, seconds: dict[str, list[float]], facts: IndexFacts) -> list[Row]:
    """Compare approximate search with FAISS Flat, and say how much of the exact answer it finds."""
    recall, low = float(f"{facts.recall or 0:.4f}"), float(f"{facts.recall_low or 0:.4f}")
    found = f"approximate search, recall@{K} of {facts.vectors:,}, {facts.recall_queries} queries"
    return [
        Row(f"FAISS Flat, {of}", "approximate search", ratio(seconds, "FAISS Flat", "approximate"), "at least", 10, 18),
        Row(found, "exact search", recall, "at least", 0.98),
        Row(f"{found}, low end of its 95 % interval", "exact search", low, "at least"),
    ]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--only", nargs="+", choices=["large", "small", "memory", "bundle"])
    parser.add_argument("--memory", type=int)
    options = parser.parse_args()
    if options.memory is not None:
        print(peak_memory(options.memory))
        return
    only = options.only or ["large", "small", "memory", *(["bundle"] if options.bundle else [])]
    rows, seconds = [], {}
    if "large" in only:
        items, queries = clustered(options.items, QUERIES + SAMPLED)
        of = f"{K} of {options.items:,}"
        settings = IndexSettings(kind="ivf-sq8", recall_at=K, recall_target=0.98)
        begin = time.perf_counter()
        approximate, facts = build_index(items, queries[QUERIES:], settings)
        built = time.perf_counter() - begin
        asked = queries[:QUERIES]
        found = interleaved(
            variants(items, asked) | {"approximate": lambda: approximate.search(asked, K)}, options.rounds, 1
        )
        seconds[f"{of}, {QUERIES} queries"] = found
        seconds[f"building the approximate index of {options.items:,}, and measuring it"] = {"approximate": [built]}
        rows += [*flat_rows(of, found), *approximate_rows(of, found, facts)]
        print(f"{facts.probes} of {facts.cells:,} cells, recall {facts.recall:.4f}")
        print({name: f"{QUERIES / t:,.0f} queries a second" for name, t in medians(found).items() if name != PLAIN})
    if "small" in only:
        items, queries = clustered(SMALLER, QUERIES)
        of = f"{K} of {SMALLER:,}"
        seconds[of] = interleaved(variants(items, queries), options.rounds, 1)
        rows += flat_rows(of, seconds[of])
    if "bundle" in only:
        items, queries = trained(options.bundle)
        of = f"{K} of {len(items):,}, trained"
        seconds[of] = interleaved(variants(items, queries[:QUERIES]), options.rounds, 1)
        rows += flat_rows(of, seconds[of], required=None)
    if "memory" in only:
        rows += memory_rows()
    write("mining", rows, seconds)


if __name__ == "__main__":
    main()
