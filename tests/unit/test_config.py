"""Recipes: read strictly, overridden from the command line, written back complete."""

import re
import types
import typing
from pathlib import Path

import pydantic
import pytest

from hatchway.config import RunSettings, load_recipe, write_recipe
from hatchway.errors import SettingsError
from hatchway.settings import Settings

RECIPES = Path(__file__).parents[2] / "recipes"

RECIPE = """
seed = 7

[positives.events]
message = 1.0
"saved for later" = 0.5

[split]
protocol = "global-time"
test_days = 2
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """Return the path of a small recipe."""
    path = tmp_path / "shop.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


def test_a_recipe_is_read_over_the_defaults(recipe: Path) -> None:
    """What the file says is taken, what it leaves out has its class's default."""
    settings = load_recipe(recipe)
    assert settings.seed == 7
    assert settings.positives.events == {"message": 1.0, "saved for later": 0.5}
    assert (settings.split.protocol, settings.split.test_days) == ("global-time", 2)
    assert settings.split.validation_days == RunSettings().split.validation_days


def test_no_recipe_is_the_defaults() -> None:
    """None reads nothing."""
    assert load_recipe(None) == RunSettings()


def test_overrides_go_over_the_file(recipe: Path) -> None:
    """Numbers, tables, bare words and quoted words; the last of two assignments wins."""
    settings = load_recipe(
        recipe,
        [
            "seed=1",
            "seed = 2",
            "split.protocol=given",
            'split.protocol="leave-one-out"',
            "positives.events={save = 2.0}",
        ],
    )
    assert settings.seed == 2
    assert settings.split.protocol == "leave-one-out"
    assert settings.positives.events == {"save": 2.0}
    assert load_recipe(recipe).seed == 7


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("seed", "write it as key=value"),
        (".seed=1", "write it as key=value"),
        ("seed.deep=1", "'seed' is a value"),
        ("split.protocoll=given", "did you mean 'protocol'"),
        ("split.test_days=many", "split.test_days = 'many'"),
        ("sed=1", "did you mean 'seed'"),
        ("model.item.categories=[category]", r"\[category\] is no TOML; .*double quotes"),
        ("positives.events={buy}", r"\{buy\} is no TOML"),
        ("batch=256", r"unknown setting 'batch'; did you mean 'training\.batch'\?"),
        ("model.epochs=3", r"did you mean 'training\.epochs' or 'nightly\.epochs'\?"),
        ("model.item.categories=category", r'should be a list, as in \["one", "two"\]'),
    ],
)
def test_overrides_that_are_refused(assignment: str, message: str, recipe: Path) -> None:
    """Each with what was received and what is meant."""
    with pytest.raises(SettingsError, match=message):
        load_recipe(recipe, [assignment])


def test_each_offence_is_blamed_on_where_it_comes_from(tmp_path: Path) -> None:
    """The file for what the file says, the assignment for what it sets; never the one for the other."""
    path = tmp_path / "mixed.toml"
    path.write_text("[split]\ntest_days = 0\n", encoding="utf-8")
    with pytest.raises(SettingsError) as refused:
        load_recipe(path, ["model.dimension=0", "seed=2", "splitt.a=1"])
    said = str(refused.value).splitlines()
    assert len(said) == 3
    assert f"{path}: split.test_days = 0" in "\n".join(said)
    assert any(line.startswith("--set model.dimension=0: model.dimension = 0:") for line in said)
    assert any(line.startswith("--set splitt.a=1: unknown setting 'splitt'") for line in said)
    with pytest.raises(SettingsError, match=r"^--set model\.dimension=0: model\.dimension = 0"):
        load_recipe(None, ["seed=2", "model.dimension=0"])
    with pytest.raises(SettingsError, match=r"^--set nightly\.history_days=1: nightly = "):
        load_recipe(None, ["nightly.history_days=1"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"seed = ", "is no TOML"),
        (b"seed = '\xff'", "byte 8 is no UTF-8"),
        (b"[splitt]\n", "unknown setting 'splitt'; did you mean 'split'"),
        (b"[split]\ntest_days = 0\nvalidation_days = -1\n", r"split.validation_days = -1.*\n.*split.test_days = 0"),
    ],
)
def test_files_that_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    """The message begins with the file and lists every offence."""
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=f"bad.toml: (.*\n)*.*{message}"):
        load_recipe(path)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    """A missing file and a folder are named, without a traceback's words."""
    with pytest.raises(SettingsError, match=r"none\.toml: there is no such file"):
        load_recipe(tmp_path / "none.toml")
    with pytest.raises(SettingsError, match="cannot be read"):
        load_recipe(tmp_path)


def test_written_settings_read_back_equal(recipe: Path, tmp_path: Path) -> None:
    """The written form is complete, and reads as what was written, odd event names included."""
    settings = load_recipe(recipe)
    written = tmp_path / "settings.toml"
    written.write_text(write_recipe(settings), encoding="utf-8")
    assert load_recipe(written) == settings
    assert "validation_days" in written.read_text(encoding="utf-8")


def nested(model: type[pydantic.BaseModel]) -> list[type[pydantic.BaseModel]]:
    """List a settings class and every settings class in it."""
    inner = [
        field.annotation
        for field in model.model_fields.values()
        if isinstance(field.annotation, type) and issubclass(field.annotation, pydantic.BaseModel)
    ]
    return [model, *(deeper for child in inner for deeper in nested(child))]


@pytest.mark.parametrize("model", nested(RunSettings), ids=lambda model: model.__name__)
def test_every_settings_class_can_be_written(model: type[pydantic.BaseModel]) -> None:
    """Every class is strict and frozen, every setting has a default and a description, and only a default is None."""
    assert issubclass(model, Settings)
    for name, field in model.model_fields.items():
        assert not field.is_required(), name
        assert field.description or re.search(rf"\b{name}\b[\w, ]*:", model.__doc__ or ""), name
        allowed = typing.get_args(field.annotation) if isinstance(field.annotation, types.UnionType) else ()
        assert types.NoneType not in allowed or field.default is None, name


def test_the_recipes_that_come_along_are_read() -> None:
    """Every recipe of the repository says only what is allowed."""
    for path in RECIPES.glob("*.toml"):
        load_recipe(path)
