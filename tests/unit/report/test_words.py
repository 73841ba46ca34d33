"""What the report's page says in words."""

import re
from importlib.resources import files

import jinja2
import pytest

from hatchway.evaluation.result import Evaluation, Figure, Ranked
from hatchway.report.negatives import account_of
from hatchway.report.page import _headline


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


@pytest.mark.parametrize(
    ("mine", "other", "said"),
    [
        ((0.3, 0.2, 0.4), (0.1, 0.05, 0.15), "3.0 times its recall"),
        ((0.05, 0.01, 0.06), (0.1, 0.07, 0.15), "only 50% of its recall"),
        ((0.3, 0.1, 0.4), (0.1, 0.05, 0.15), "undecided: the intervals overlap"),
        ((0.3, None, None), (0.1, None, None), "undecided: no intervals were measured"),
    ],
)
def test_how_the_model_compares(
    mine: tuple[float, float | None, float | None], other: tuple[float, float | None, float | None], said: str
) -> None:
    """One reason at a time."""
    figures = [{"recall@5": Figure(value=value, low=low, high=high)} for value, low, high in (mine, other)]
    evaluation = Evaluation.model_construct(
        metrics=figures[0], baselines={"random": Ranked(metrics=figures[1], slices={}, tied_share=None)}
    )
    assert _headline(evaluation, 5) == [("random", said)]


def test_nothing_is_called_for_sale_where_the_catalogue_does_not_say_so() -> None:
    """Without a column ``gone`` nobody knows; without categories the rows are no category's."""
    page = files("hatchway.report").joinpath("report.html").read_text(encoding="utf-8")
    [line] = [line for line in page.splitlines() if "what the model would show beside it" in line]
    shown = {
        columns: jinja2.Template(line).render(store={"catalogue_columns": columns})
        for columns in (("item", "title"), ("item", "title", "category", "gone"))
    }
    assert [("for sale" in text, "of some categories" in text) for text in shown.values()] == [
        (False, False),
        (True, True),
    ]
