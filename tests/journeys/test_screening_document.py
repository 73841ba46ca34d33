"""What docs/screening.md says of settings and shows as code is so."""

import re
from pathlib import Path

from hatchway.config import load_recipe
from hatchway.screening.settings import ScreeningSettings

DOCUMENT = Path(__file__).parents[2] / "docs" / "screening.md"


def test_every_setting_is_explained() -> None:
    """By its name, and with the default that it has where the text states one."""
    text = DOCUMENT.read_text("utf-8")
    assert not [name for name in ScreeningSettings.model_fields if f"`{name}`" not in text]
    stated = re.findall(r"`(\w+)`\s\((\d[\d.]*)\)", text)
    assert len(stated) >= 5
    defaults = ScreeningSettings()
    assert [(name, float(getattr(defaults, name))) for name, _ in stated] == [(name, float(n)) for name, n in stated]


def test_the_recipe_is_one(tmp_path: Path) -> None:
    """The table of the page is read as it stands."""
    (block,) = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    (tmp_path / "recipe.toml").write_text(block)
    settings = load_recipe(tmp_path / "recipe.toml").screening
    assert (settings.engaged_days, settings.photo, settings.title_threshold) == (14, False, 0.95)


def test_the_example_answers_what_it_says() -> None:
    """Seller, title, none."""
    (block,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, str(DOCUMENT), "exec"), names)  # noqa: S102
    assert names["reasons"].tolist() == [6, 8, 0]  # type: ignore[attr-defined]
