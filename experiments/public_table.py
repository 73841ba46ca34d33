"""The table of what public data say about the claims, beside what the simulated markets say."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = "public_data"


def public(results: Mapping[str, Any], simulated: Mapping[int, str]) -> str:
    """Return the table.

    Args:
        results: of the experiment on public data.
        simulated: the verdicts on the simulated markets by the claim's number; claims that are absent have none yet.
    """
    lines = ["| | data | what was looked at | the number | verdict | on simulated markets |", "|---" * 6 + "|"]
    for group in results["groups"]:
        chosen = group["conditions"][group["headline"]]
        mean, low, high = chosen["figure"]
        cells = [
            str(group["claim"]),
            group["data"],
            f"[{group['measured']}]({FOLDER}/README.md#claim-{group['claim']})",
            f"{chosen['says']}: {mean:.3f} ({low:.3f} to {high:.3f})",
            f"**{group['verdict']}**",
            simulated.get(group["claim"], "not measured yet"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def public_section(here: Path, simulated: Mapping[int, str]) -> str:
    """Return the section of the index, from the results beside it."""
    results = json.loads((here / FOLDER / "results.json").read_text("utf-8"))
    seeds = {len(seeds) for seeds in results["seeds"].values()}
    said = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    return SECTION.format(table=public(results, simulated), seeds=said)


SECTION = """## The same on public data

What public data can show of the claims, by the same rule, with {seeds} seeds a data set
([how, and why they differ where they do](public_data/README.md), [figure](public_data/figure.svg)). There is one split
of each (MIND is split anew for each seed), so an interval says what another start of the training would change, and not
what other buyers would.

{table}
"""
