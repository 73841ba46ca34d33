"""What the report's page says in words."""

import re
from importlib.resources import files

from hatchway.report.negatives import account_of


def test_sentences_are_parted_when_blocks_lose_their_line_ends() -> None:
    """The template is rendered with trim_blocks, so a block at the end of a line glues the next line to it."""
    page = files("hatchway.report").joinpath("report.html").read_text(encoding="utf-8")
    assert re.findall(r"[.]{% endif %}\n(?=\w)", page) == []


def test_uniform_draws_are_said_to_reach_what_was_on_offer() -> None:
    """Listings that were put up after the training part are never drawn, so it is not the whole catalogue."""
    account = account_of([{"columns": {"uniform": 5.0}}])
    assert account is not None
    assert "on offer" in account.sources[0].meaning
    assert "whole catalogue" not in account.sources[0].meaning
