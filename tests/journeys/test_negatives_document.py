"""The example of docs/negatives.md runs as it stands; every setting of what is drawn is explained in the page."""

import re
from pathlib import Path
from typing import Any, get_args

import torch

from hatchway.negatives.settings import NegativesSettings
from hatchway.negatives.sources import Reason, Source
from hatchway.training.mining.earlier import SkipReason
from hatchway.training.mining.settings import MiningSettings

DOCUMENT = Path(__file__).parents[2] / "docs" / "negatives.md"


def test_the_example_runs() -> None:
    """Two steps with a queue, mined items and draws by row; every source but the impressions has columns at the end."""
    (block,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, str(DOCUMENT), "exec"), names)  # noqa: S102
    assert bool(torch.isfinite(names["loss"].detach()))
    assert float(names["items"].weight.grad.abs().sum()) > 0
    ledger = names["ledger"]
    assert set(ledger.sources.tolist()) == {Source.IN_BATCH, Source.POPULARITY, Source.QUEUE}
    assert set(ledger.own_sources.flatten().tolist()) == {Source.MINED, Source.UNIFORM}


def test_every_setting_is_explained() -> None:
    """A setting that decides what is drawn stands in the page by its name."""
    text = DOCUMENT.read_text("utf-8")
    elsewhere = {"frequency", "streaming", "count_min", "schedule", "positive"}
    absent = [name for name in NegativesSettings.model_fields if name not in elsewhere and f"`{name}" not in text]
    assert not absent


def test_every_setting_of_mining_and_every_reason_is_explained() -> None:
    """The page of mining names the settings, the reasons of refused candidates, and those of skipped minings."""
    text = (DOCUMENT.parent / "mining.md").read_text("utf-8")
    reasons = {"same_item", "engaged", "looked_at", "seller", "photo", "title", "not_on_offer", "score", "judge"}
    assert {reason.name.lower() for reason in Reason} - reasons == {"positive", "own", "repeat"}
    named = [*MiningSettings.model_fields, *reasons, *get_args(SkipReason)]
    assert not [name for name in named if f"`{name}`" not in text]
