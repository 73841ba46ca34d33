"""Near duplicates: finding near hashes among a million, and titles that say the same among a million.

Usage: python benchmarks/near_duplicates.py [--rounds 5]

Hashes: 100,000 of a million random ones of 64 bits, radius 8, against FAISS's exhaustive and multi-hash binary indexes
(all find the same pairs; the multi-hash index is given as many tables and turned bits as find them all), and the plain
path against the compiled one. Times are by query, those of our own with the sorting of the million; the others are
asked less often, since they would take minutes. Titles: a million of six to nine words from a long-tailed vocabulary, a
tenth of which are another one with its words in another order and a slip of the pen; all against all is what RapidFuzz
takes for 2,000 against 2,000, times the number of pairs; both in CPU seconds. Writes near_duplicates.json beside
this file.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import faiss
import numpy as np
import polars as pl
from interleaved import interleaved
from rapidfuzz import fuzz, process
from results import Row, medians, write

from hatchway.randomness import stream
from hatchway.screening import hamming
from hatchway.screening.hamming import UInt64, near_pairs
from hatchway.screening.titles import similar_titles

NUMBER, RADIUS, MOST = 1_000_000, 8, 200
ASKED, PLAIN, FEW, COMPARED = 100_000, 10_000, 100, 2_000


def make_hashes() -> UInt64:
    """Return random hashes, a tenth of which are another one with up to eight bits turned."""
    random = stream(1, "benchmark of near hashes")
    hashes = random.integers(2**64, size=NUMBER, dtype=np.uint64)
    copies = NUMBER // 10
    hashes[:copies] = hashes[copies : 2 * copies]
    for _ in range(RADIUS):
        turned = np.uint64(1) << random.integers(64, size=copies, dtype=np.uint64)
        hashes[:copies] ^= turned
    return hashes


def make_titles() -> pl.Series:
    """Return titles in which a tenth say the same as another one."""
    random = stream(1, "benchmark of titles")
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(letters[random.integers(26, size=n)]) for n in random.integers(4, 10, size=50_000)]
    chance = 1 / (10 + np.arange(len(words)))
    codes = random.choice(len(words), size=(NUMBER, 9), p=chance / chance.sum())
    lengths = random.integers(6, 10, size=NUMBER)
    titles = [" ".join([words[code] for code in row[:length]]) for row, length in zip(codes, lengths, strict=True)]
    copies = NUMBER // 10
    for row in range(copies):
        said = titles[copies + row].split()
        random.shuffle(said)
        at = int(random.integers(len(said)))
        said[at] = said[at][:1] + said[at][2:]
        titles[row] = " ".join(said)
    return pl.Series("title", titles)


def bytes_of(hashes: UInt64) -> np.ndarray:
    """Return hashes as FAISS takes them, [N, 8] uint8."""
    return hashes.view(np.uint8).reshape(-1, 8)


def near_hashes(rounds: int) -> tuple[list[Row], dict[str, list[float]]]:
    """Measure the search of hashes."""
    hashes = make_hashes()
    queries = hashes[:ASKED]
    flat, several = faiss.IndexBinaryFlat(64), faiss.IndexBinaryMultiHash(64, 4, 16)
    flat.add(bytes_of(hashes))
    several.add(bytes_of(hashes))
    several.nflip = RADIUS // 4
    indexes = [("faiss flat", flat), ("faiss multi-hash", several)]

    def ours(number: int, numba: bool = True) -> hamming.NearPairs:
        hamming.available = lambda: numba
        return near_pairs(queries[:number], hashes, RADIUS, MOST)

    variants: dict[str, Callable[[], object]] = {
        "compiled": partial(ours, ASKED),
        "plain": partial(ours, PLAIN, numba=False),
        "faiss flat": lambda: flat.range_search(bytes_of(queries[:FEW]), RADIUS + 1),
        "faiss multi-hash": lambda: several.range_search(bytes_of(queries[:FEW]), RADIUS + 1),
    }
    found = ours(ASKED)
    near = {"compiled": int((found.first < FEW).sum()), "plain": int((ours(PLAIN, numba=False).first < FEW).sum())}
    near |= {name: int(index.range_search(bytes_of(queries[:FEW]), RADIUS + 1)[0][-1]) for name, index in indexes}
    if len(set(near.values())) > 1:
        raise SystemExit(f"the searches find different numbers of pairs: {near}")
    seconds = interleaved(variants, rounds, warm_up=1)
    taken = medians(seconds)
    by_query = taken["compiled"] / ASKED
    begin = time.process_time()
    hamming.available = lambda: True
    near_pairs(hashes, hashes, RADIUS, MOST)
    whole = time.process_time() - begin
    what = f"hashes within {RADIUS} bits among {NUMBER:,}"
    rows = [
        Row(what, "FAISS IndexBinaryFlat, time a query", by_query / (taken["faiss flat"] / FEW), "at most", 0.1),
        Row(
            what,
            "FAISS IndexBinaryMultiHash, time a query",
            by_query / (taken["faiss multi-hash"] / FEW),
            "at most",
            1,
        ),
        Row(what, "the plain path, time", by_query / (taken["plain"] / PLAIN), "at most", 1.0),
        Row(f"{what}, all against all", "CPU seconds", whole, unit="s"),
    ]
    return rows, seconds


def alike_titles() -> list[Row]:
    """Measure the search of titles."""
    titles = make_titles()
    begin = time.process_time()
    found = similar_titles(titles)
    taken = time.process_time() - begin
    told = found.similar.contains(np.arange(NUMBER // 10), np.arange(NUMBER // 10) + NUMBER // 10)
    some = titles[:COMPARED].to_list()
    begin = time.process_time()
    process.cdist(some, some, scorer=fuzz.token_sort_ratio, score_cutoff=90, workers=1)
    all_pairs = (time.process_time() - begin) / COMPARED**2 * NUMBER**2 / 2
    what = f"titles that say the same among {NUMBER:,}"
    return [
        Row(what, "RapidFuzz's token_sort_ratio of every two, time", taken / all_pairs, "at most", 0.01),
        Row(what, "CPU seconds", taken, unit="s"),
        Row(f"{what}: reordered with a slip, found", "share", float(told.mean()), "at least", 0.9),
    ]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    rows, seconds = near_hashes(rounds)
    write("near_duplicates", [*rows, *alike_titles()], {"hashes": seconds})


if __name__ == "__main__":
    main()
