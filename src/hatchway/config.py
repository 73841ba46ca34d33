"""The settings of a run, as one table, and the only reader and writer of settings files.

A recipe is a TOML file with one table for each room, whose keys are the fields of that room's settings class; what a
recipe leaves out has the default of the class. A run writes its settings back complete, so that they say everything.
"""

import copy
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import Field

from hatchway.data.positives import PositivesSettings
from hatchway.data.splits import SplitSettings
from hatchway.errors import SettingsError
from hatchway.evaluation.settings import EvaluationSettings
from hatchway.negatives.settings import NegativesSettings
from hatchway.nightly.settings import NightlySettings
from hatchway.screening.settings import ScreeningSettings
from hatchway.settings import Settings
from hatchway.towers.settings import ModelSettings
from hatchway.training.mining.settings import MiningSettings
from hatchway.training.settings import TrainingSettings


class RunSettings(Settings):
    """Everything that decides a run, besides the store.

    Attributes:
        seed: the one seed; every random stream of the run is derived from it.
        positives: which events count, and how much.
        split: what trains, what validates, what tests.
        model: the two towers.
        negatives: which negatives, and their correction.
        screening: what may not stand as a negative.
        mining: which answers of an earlier model become negatives.
        training: the loop.
        evaluation: what is reported.
        nightly: how nights run (``hatchway nightly``); a single run does not look at it.
    """

    seed: int = Field(default=1, ge=0)
    positives: PositivesSettings = PositivesSettings()
    split: SplitSettings = SplitSettings()
    model: ModelSettings = ModelSettings()
    negatives: NegativesSettings = NegativesSettings()
    screening: ScreeningSettings = ScreeningSettings()
    mining: MiningSettings = MiningSettings()
    training: TrainingSettings = TrainingSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    nightly: NightlySettings = NightlySettings()


def load_recipe(path: Path | None, overrides: Iterable[str] = ()) -> RunSettings:
    """Read the settings of a run.

    Args:
        path: a TOML file, or None for the defaults.
        overrides: assignments such as ``"training.epochs=3"``, which go over what the file says; the value is TOML, and
            what is no TOML value is text (``"split.protocol=given"``).

    Raises:
        SettingsError: the file cannot be read, is no TOML, or says something that is not allowed; every offence is
            listed, with where it comes from: the file's name, or the assignment.
    """
    of_file = {} if path is None else _read(path)
    table, assignments = of_file, tuple(overrides)
    for assignment in assignments:
        table = _assign(table, assignment)
    offences = _offences(table)
    if not offences:
        return RunSettings.parse(table)
    before = _offences(of_file)
    said = [f"{path if line in before else _assigned(line, assignments)}: {line}" for line in offences]
    raise SettingsError("\n".join(said))


def write_recipe(settings: Settings) -> str:
    """Write settings as TOML, complete, such that reading the text gives equal settings.

    A setting that is None is left out: TOML has no word for it, and wherever None is allowed it is the default.
    """
    return tomli_w.dumps(settings.model_dump(mode="json", exclude_none=True))


def _offences(table: Mapping[str, Any]) -> list[str]:
    """Say what is wrong with settings, a line each."""
    try:
        RunSettings.parse(table)
    except SettingsError as error:
        return str(error).splitlines()
    return []


def _assigned(offence: str, assignments: Iterable[str]) -> str:
    """Name the assignments that an offence comes from: those of its setting or of its table, or else all."""
    where = offence.removeprefix("unknown setting '").replace("'", " ").partition(" ")[0] + "."
    keys = {assignment: assignment.partition("=")[0].strip() + "." for assignment in assignments}
    chosen = [each for each, key in keys.items() if key.startswith(where) or where.startswith(key)]
    return " ".join(f"--set {assignment}" for assignment in chosen or keys)


def _read(path: Path) -> dict[str, Any]:
    """Decode one TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"{path}: there is no such file; name a recipe (TOML), e.g. one of recipes/") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}); name a recipe (TOML)") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: byte {error.start} is no UTF-8; a recipe is TOML in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: is no TOML: {error}") from None


def _assign(table: Mapping[str, Any], assignment: str) -> dict[str, Any]:
    """Return ``table`` with one ``key.key=value`` put over it."""
    key, equals, text = assignment.partition("=")
    path = [part.strip() for part in key.split(".")]
    if not equals or not all(path):
        raise SettingsError(f"--set {assignment}: write it as key=value, e.g. --set split.protocol=given")
    changed = copy.deepcopy(dict(table))
    place = changed
    for part in path[:-1]:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise SettingsError(f"--set {assignment}: {part!r} is a value and has no settings in it")
    value = _value(text.strip())
    if isinstance(value, str) and value.startswith(("[", "{")):
        raise SettingsError(
            f"--set {assignment}: {value} is no TOML; write names in a list or table in double quotes, and the whole "
            f"""in single ones for the shell, as in --set 'model.item.categories=["category"]'"""
        )
    place[path[-1]] = value
    return changed


def _value(text: str) -> Any:
    """Decode one TOML value; what is none is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
