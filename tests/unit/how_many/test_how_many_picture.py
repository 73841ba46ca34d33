"""The picture says what the answer says, and is the same every time."""

from pathlib import Path

import pytest
from PIL import Image

from hatchway.errors import SettingsError
from hatchway.how_many.estimator import ratio
from hatchway.how_many.picture import write_picture


def test_an_svg_names_the_answer(tmp_path: Path) -> None:
    """K*, its range, the AUC and the kinds of samples stand in it as text; drawn twice it has the same bytes."""
    answer = ratio(auc=0.95)
    for name in ("one.svg", "two.svg"):
        write_picture(answer, tmp_path / name)
    text = (tmp_path / "one.svg").read_text("utf-8")
    for said in ("K = 18<", "from 12 to 29", "AUC 0.95", ">easy<", ">good<", ">bad<"):
        assert said in text
    assert "bounded" not in text
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_a_bounded_answer_says_so(tmp_path: Path) -> None:
    """The picture of a low AUC does not look like an optimum."""
    write_picture(ratio(auc=0.52), tmp_path / "low.svg")
    assert "K = 1,000, bounded" in (tmp_path / "low.svg").read_text("utf-8")


def test_a_png_is_a_picture(tmp_path: Path) -> None:
    """The curve's own colour is drawn from the left edge to the right."""
    write_picture(ratio(mean=1.0, bound=2), tmp_path / "small.PNG")
    with Image.open(tmp_path / "small.PNG") as picture:
        assert picture.format == "PNG"
        assert picture.width > 1000
        colours = picture.convert("RGB").getcolors(maxcolors=100_000)
    assert (0x1F, 0x5F, 0x8B) in {colour for _, colour in colours or []}


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    with pytest.raises(SettingsError, match=r"an \.svg or a \.png"):
        write_picture(ratio(auc=0.9), tmp_path / "curve.gif")
    assert not list(tmp_path.iterdir())
