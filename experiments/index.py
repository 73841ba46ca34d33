"""The index of the experiments and the table of knobs, written from what the experiments left.

Usage: python experiments/index.py [--check]

Reads every folder's results.json, writes README.md beside this file and docs/knobs.md. With --check nothing is written,
and it ends with 1 where a page is not what the results say.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import public_table
import recipes_verdict
from trials import verdict

from hatchway.artefacts.atomic import write_text
from hatchway.negatives.settings import NegativesSettings
from hatchway.training.mining.settings import MiningSettings
from hatchway.training.settings import TrainingSettings

HERE = Path(__file__).parent
INDEX, KNOBS_PAGE = HERE / "README.md", HERE.parent / "docs" / "knobs.md"


@dataclass(frozen=True)
class Said:
    """What is said by a measured condition; the figure is put after it.

    Attributes:
        folder: of the claim.
        condition: how the condition's own words begin.
        yes, no, undecided: the sentence, by what became of the condition.
    """

    folder: str
    condition: str
    yes: str
    no: str
    undecided: str


@dataclass(frozen=True)
class Knob:
    """A line of the table.

    Attributes:
        name: in words.
        setting: as settings files have it, with the default.
        means: what turning it up does, by measurement.
        watch: what to look at when it is turned.
    """

    name: str
    setting: str
    means: tuple[Said, ...]
    watch: str


def claims() -> dict[str, dict[str, Any]]:
    """Return the results of all claims by folder, in the order of their numbers."""
    found = {}
    for path in HERE.glob("*/results.json"):
        results = json.loads(path.read_text("utf-8"))
        if isinstance(results, dict) and "claim" in results:
            found[path.parent.name] = results
    return dict(sorted(found.items(), key=lambda item: item[1]["claim"]))


def others() -> dict[str, str]:
    """Return the titles of the other experiments that have results and a page."""
    pages = [path.parent / "README.md" for path in sorted(HERE.glob("*/results.json"))]
    mine = claims()
    return {
        page.parent.name: page.read_text("utf-8").splitlines()[0].removeprefix("# ")
        for page in pages
        if page.exists()
        and page.parent.name not in mine
        and page.parent.name not in (recipes_verdict.FOLDER, public_table.FOLDER)
    }


def waiting() -> dict[str, tuple[int, str]]:
    """Return the number and the words of the claims that have a script and no results yet, by folder."""
    found = {}
    for script in HERE.glob("*/run.py"):
        text = script.read_text("utf-8")
        number, says = (
            re.search(r"^    number=(\d+),$", text, re.MULTILINE),
            re.search(r'^    says="(.+)",$', text, re.MULTILINE),
        )
        if number and says and not (script.parent / "results.json").exists():
            found[script.parent.name] = int(number[1]), says[1]
    return dict(sorted(found.items(), key=lambda item: item[1]))


def figure_of(condition: dict[str, Any]) -> str:
    """Write a condition's figure with its interval.

    >>> figure_of({"figure": [0.3304, 0.29961, 0.36124]})
    '0.330 (0.300 to 0.361)'
    """
    mean, low, high = condition["figure"]
    return f"{mean:.3f} ({low:.3f} to {high:.3f})"


def index() -> str:
    """Return the index."""
    lines = []
    for folder, results in claims().items():
        chosen = results["conditions"][results["headline"]]
        lines.append(
            f"| {results['claim']} | [{results['says']}]({folder}/README.md) | **{results['verdict']}** | "
            f"{chosen['says']}: {figure_of(chosen)} | [figure]({folder}/figure.svg) |"
        )
    lines += [f"| {number} | {says} | not measured yet | | |" for number, says in waiting().values()]
    lines += recipes()
    rest = [f"- [{title}]({folder}/README.md)" for folder, title in others().items()]
    simulated = {results["claim"]: str(results["verdict"]) for results in claims().values()}
    return INDEX_TEXT.format(
        claims="\n".join(lines), public=public_table.public_section(HERE, simulated), others="\n".join(rest)
    )


def recipes() -> list[str]:
    """Return the line of the four recipes, which are compared as wholes."""
    results = json.loads((HERE / recipes_verdict.FOLDER / "results.json").read_text("utf-8"))
    found = recipes_verdict.conditions(results)
    first, folder = found[0], recipes_verdict.FOLDER
    name = f"[{recipes_verdict.SAYS}]({folder}/README.md)"
    number = f"{first.says}: {figure_of({'figure': first.figure})}"
    return [f"| recipes | {name} | **{verdict(found)}** | {number} | [figure]({folder}/figure.svg) |"]


def knobs() -> str:
    """Return the page of the knobs."""
    found = claims()
    lines = []
    for knob in KNOBS:
        means = "; ".join(filter(None, (_said(said, found) for said in knob.means))) or "not measured yet"
        lines.append(f"| {knob.name} | {knob.setting} | {means} | {knob.watch} |")
    return KNOBS_TEXT.format(knobs="\n".join(lines))


def _said(said: Said, found: dict[str, dict[str, Any]]) -> str:
    """Return a sentence with its figure; empty where the claim was not tried yet.

    Raises:
        SystemExit: the claim has no such condition.
    """
    if said.folder not in found:
        return ""
    for condition in found[said.folder]["conditions"]:
        if condition["says"].startswith(said.condition):
            text = {"yes": said.yes, "no": said.no, "undecided": said.undecided}[condition["holds"]]
            return f"{text} [{figure_of(condition)}](../experiments/{said.folder}/README.md)"
    raise SystemExit(f"experiments/{said.folder} has no condition that begins with {said.condition!r}; see KNOBS")


INDEX_TEXT = """# Experiments

Each folder asks one question, and has the script that answers it (`run.py`), what came out (`results.json`), and a page
that says what it means. This page is written from the results by `python experiments/index.py`, and `make experiments`
runs the claims' scripts at their short settings from end to end. Intervals are 95 % intervals.

## Claims about negatives

What practitioners repeat about negatives, each tried on five [simulated markets](../docs/market.md) whose rules were
fixed before, and some besides where everything is known exactly. What has to be true for a claim, and above or below
which bound, stands in its script. A condition is true where its whole interval over the five seeds lies on that side,
false where it lies on the other, and else undecided. A claim *holds* where all its conditions are true and *in part*
where some are; where none is, it *does not hold* if one is false, and is *undecided* if none is. One condition's figure
stands here; all of them stand on the claim's own page. The last line is about whole recipes: every comparison with the
mix, by slice and by true taste, is a condition.

| | claim | verdict | the number | |
|---|---|---|---|---|
{claims}

What follows for the settings: [the knobs](../docs/knobs.md).

{public}
## Other experiments

{others}
"""

_TRAINING, _NEGATIVES, _MINING = TrainingSettings(), NegativesSettings(), MiningSettings()

KNOBS = (
    Knob(
        "batch size",
        f"`training.batch` {_TRAINING.batch:,}",
        (
            Said(
                "how_many_columns",
                "recall, batch ×2, uniform ×1, epochs ×2 less",
                "more in-batch negatives; doubled, with as many steps, recall rises",
                "more in-batch negatives, and with as many steps recall falls all the same",
                "more in-batch negatives, and with as many steps no more recall that could be told from none",
            ),
            Said(
                "how_many_columns",
                "recall, batch ×2, uniform ×1 less",
                "with as many epochs, and so half the steps, it rises",
                "with as many epochs, and so half the steps, it falls",
                "with as many epochs, and so half the steps, it changes by no more than chance",
            ),
        ),
        "the number of steps (epochs × positives / batch): raise the epochs or the rates with it; memory",
    ),
    Knob(
        "random negatives a batch",
        f"`negatives.uniform` {_NEGATIVES.uniform:,}",
        (
            Said(
                "never_engaged",
                "recall, mixed less in-batch",
                "from none to about the batch's size, recall rises",
                "from none to about the batch's size, recall falls",
                "from none to about the batch's size, recall changes by no more than chance",
            ),
            Said(
                "never_engaged",
                "never-engaged among the first 20",
                "and never-engaged listings leave the rows, share of a row",
                "and never-engaged listings come into the rows, less of a row by",
                "and never-engaged listings stay, share of a row",
            ),
            Said(
                "how_many_columns",
                "recall, batch ×1, uniform ×2 less",
                "twice as many bring more still",
                "twice as many bring less",
                "twice as many bring no more that could be told from chance",
            ),
        ),
        "recall of the slice *new*: what has had no positive yet goes down as a whole; item vectors a step",
    ),
    Knob(
        "mined negatives a positive",
        f"`negatives.mined` {_NEGATIVES.mined:g}, `mining.cap` {_MINING.cap}",
        (
            Said(
                "mined_per_positive",
                "recall, 2 mined less 0",
                "two beside the easy ones raise recall",
                "two beside the easy ones lower recall",
                "two beside the easy ones change recall by no more than chance",
            ),
            Said(
                "mined_per_positive",
                "recall, 8 mined less 2",
                "eight instead of two lower it",
                "eight instead of two raise it",
                "eight instead of two change it by no more than chance",
            ),
        ),
        "how many of them are hidden positives (the run's counts by reason); item vectors a step, as many as mined",
    ),
    Knob(
        "window of ranks, nearer to the top",
        f"`mining.first_rank` {_MINING.first_rank}, `mining.last_rank` {_MINING.last_rank}",
        (
            Said(
                "mining_window",
                "hidden positives without the filter",
                "more of them are what the buyer wants, share of the mined",
                "fewer of them are what the buyer wants, share of the mined",
                "about as many of them are what the buyer wants, share of the mined",
            ),
            Said(
                "mining_window",
                "recall, ranks",
                "and recall falls, by",
                "and recall rises, less by the lower window by",
                "and recall changes by no more than chance, for the lower window by",
            ),
        ),
        "the filter (`screening`), and recall on near-duplicate queries",
    ),
    Knob(
        "weight of the correction",
        f"`negatives.alpha` {_NEGATIVES.alpha:g}",
        (
            Said(
                "in_batch_correction",
                "recall of head listings",
                "from 0 to 1 popular listings are found again, head recall",
                "from 0 to 1 popular listings are found less, head recall",
                "from 0 to 1 popular listings are found about as often, head recall",
            ),
            Said(
                "alpha_above_one",
                "head listings among the first 20",
                "above 1 popular listings, not rare ones, flood the rows: at 1.5 more of a row by",
                "above 1 popular listings leave the rows: at 1.5 by",
                "above 1 the rows stay as they are, head listings by",
            ),
        ),
        "recall of head and of tail apart, and the head's share of a row; a stale frequency",
    ),
    Knob(
        "power of popularity",
        f"`negatives.beta` {_NEGATIVES.beta:g}, of `negatives.popularity` draws",
        (
            Said(
                "popularity_power",
                "head recall, plain",
                "without correction 1 punishes popular listings more than .75, head recall by",
                "without correction 1 punishes popular listings less than .75, head recall by",
                "without correction 1 punishes popular listings as .75 does, head recall by",
            ),
            Said(
                "popularity_power",
                "head recall, power .75",
                "but .75 only softens it: what the correction still adds to head recall",
                "and at .75 the correction takes head recall away",
                "and at .75 the correction adds nothing to head recall that could be told from chance",
            ),
            Said(
                "popularity_power",
                "share of draws on dead listings, beta 0 less",
                "down to 0, more draws are wasted on dead listings, share",
                "down to 0, fewer draws go to dead listings, share",
                "down to 0, as many draws go to dead listings, share",
            ),
        ),
        "that the correction is on (`alpha` 1), after which the power decides only where the draws go",
    ),
)

KNOBS_TEXT = """# The knobs

What each setting of the negatives does when it is turned up, by measurement. Figures are differences of recall@20, or
of shares where that is said, between settings on the same five simulated markets, with 95 % intervals; each leads to
where it was measured. The markets have 10,000 listings and about 23,000 training positives, so signs and orders of size
carry over to a larger catalogue, and decimals do not. This page is written from the results by
`python experiments/index.py`; all claims that were tried are in [the index](../experiments/README.md).

| knob | setting and default | turning it up means | watch |
|---|---|---|---|
{knobs}

Why each default is what it is: [the defaults](decisions/defaults.md).
What each source of negatives is, costs and needs: [sources of negatives](negatives.md). What alpha weighs:
[the ledger](ledger.md). How hard negatives are mined: [mining](mining.md).
"""


def main() -> None:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 where a page is out of date")
    options = parser.parse_args()
    stale = [path for path, text in ((INDEX, index()), (KNOBS_PAGE, knobs())) if _differs(path, text)]
    if options.check and stale:
        sys.exit(f"out of date: {', '.join(str(path) for path in stale)}; run python experiments/index.py")
    if not options.check:
        write_text(INDEX, index())
        write_text(KNOBS_PAGE, knobs())


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text("utf-8") != text


if __name__ == "__main__":
    main()
