"""Writes the table of docs/performance.md from the JSON files that the benchmarks left beside this one.

Usage: python benchmarks/table.py
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- begin: written by benchmarks/table.py -->", "<!-- end -->"
ORDER = ("loss", "masks", "draws", "frequency", "step", "batches", "mining", "near_duplicates", "serving", "peers")


def number(value: float | None, unit: str = "") -> str:
    """Write a number with three digits that count."""
    if value is None:
        return ""
    shown = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{shown} {unit}".strip()


def lines_of(result: dict[str, Any]) -> list[str]:
    """Return the lines of one benchmark."""
    lines = []
    for row in result["rows"]:
        bound = "" if row["required"] is None else f"{row['sense']} {number(row['required'], row['unit'])}"
        cells = (row["path"], row["against"], number(row["value"], row["unit"]), bound, number(row["aim"], row["unit"]))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def table() -> str:
    """Return the table and a line about the machine."""
    found = {name: HERE / f"{name}.json" for name in ORDER}
    results = {name: json.loads(path.read_text()) for name, path in found.items() if path.is_file()}
    lines = ["| path | against | measured | required | aim |", "|---|---|---|---|---|"]
    for result in results.values():
        lines += lines_of(result)
    machines = {
        "{processor}, {cores} cores ({instructions}), {threads} threads, torch {torch}, NumPy {numpy}, ".format(
            **machine
        )
        + ("numba" if machine["numba"] else "no numba")
        for machine in (result["machine"] for result in results.values())
    }
    return "\n".join([*lines, "", f"Measured on: {'; '.join(sorted(machines))}."])


def main() -> None:
    """Put the table between its marks."""
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
