"""How benchmarks write down what they found: one JSON file each, from which ``table.py`` makes the table."""

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from hatchway import compiled
from hatchway.artefacts.atomic import write_text

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        path: what was measured.
        against: what it is compared with.
        value: a ratio of medians of interleaved rounds, or a size in ``unit``.
        sense: whether ``required`` is the most or the least that is allowed.
        required: the bound, None where there is none.
        aim: what would be better still.
        unit: of the value; empty for a ratio.
    """

    path: str
    against: str
    value: float
    sense: Literal["at most", "at least"] = "at most"
    required: float | None = None
    aim: float | None = None
    unit: str = ""

    @property
    def holds(self) -> bool:
        """Whether the value is within the bound."""
        if self.required is None:
            return True
        return self.value <= self.required if self.sense == "at most" else self.value >= self.required


def medians(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median of each variant."""
    return {name: statistics.median(times) for name, times in seconds.items()}


def ratio(seconds: Mapping[str, Sequence[float]], ours: str, other: str) -> float:
    """Return the ratio of two variants' medians, to four digits."""
    found = medians(seconds)
    return float(f"{found[ours] / found[other]:.4g}")


def processor() -> str:
    """Return what the processor calls itself, or its architecture where it does not say."""
    said = Path("/proc/cpuinfo")
    lines = said.read_text().splitlines() if said.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def write(name: str, rows: Sequence[Row], seconds: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    """Write ``name.json``, rows of earlier runs that were not measured anew among them, and print the new rows.

    Args:
        name: the benchmark.
        rows: what it found.
        seconds: the times of each group of interleaved variants.
    """
    result: dict[str, Any] = {
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "numba": compiled.available(),
        },
        "rows": [asdict(row) for row in rows],
        "milliseconds": {
            group: {
                name: {"median": round(1e3 * statistics.median(t), 3), "rounds": len(t)} for name, t in times.items()
            }
            for group, times in seconds.items()
        },
    }
    file = FOLDER / f"{name}.json"
    if file.exists():  # a benchmark that is run in parts replaces the part that was run, and leaves the others
        before = json.loads(file.read_text())
        measured = {(row.path, row.against) for row in rows}
        result["rows"] += [row for row in before["rows"] if (row["path"], row["against"]) not in measured]
        result["milliseconds"] = before["milliseconds"] | result["milliseconds"]
    write_text(file, json.dumps(result, indent=1) + "\n")
    for row in rows:
        bound = "" if row.required is None else f" ({row.sense} {row.required:g})"
        print(
            f"{'ok  ' if row.holds else 'MISS'} {row.path} / {row.against}: {row.value:g} {row.unit}{bound}", flush=True
        )
