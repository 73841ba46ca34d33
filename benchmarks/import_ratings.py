"""Measures ``hatchway import movielens`` on a generated ``ratings.dat`` of MovieLens-1M's form and size.

Run ``python benchmarks/import_ratings.py [ROWS]``; prints one JSON object. The official file is not needed.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

BUYERS, ITEMS = 6_040, 3_952
FIRST, LAST = 956_703_932, 1_046_454_590  # the first and last second of MovieLens-1M


def write_ratings(path: Path, rows: int) -> None:
    """Write ``buyer::item::stars::time`` lines, buyer by buyer as the official file has them."""
    rng = np.random.default_rng(0)
    columns = (
        np.sort(rng.integers(1, BUYERS + 1, rows)),
        rng.integers(1, ITEMS + 1, rows),
        rng.integers(1, 6, rows),
        rng.integers(FIRST, LAST, rows),
    )
    lines = pl.concat_str([pl.Series(column).cast(pl.String) for column in columns], separator="::")
    pl.select(lines).write_csv(path, include_header=False, quote_style="never")


def main() -> None:
    """Import twice, the second time over the first store, and print the seconds of each."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_209
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_ratings(folder / "ratings.dat", rows)
        program = "from hatchway.cli.main import main; main()"
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            arguments = ["import", "movielens", str(folder / "ratings.dat"), str(folder / "store"), "--quiet", "--json"]
            subprocess.run([sys.executable, "-c", program, *arguments], check=True, stdout=subprocess.DEVNULL)
            seconds.append(round(time.perf_counter() - start, 2))
    print(json.dumps({"rows": rows, "seconds": seconds[0], "seconds_over_an_old_store": seconds[1]}))


if __name__ == "__main__":
    main()
