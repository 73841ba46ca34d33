"""The one shape of every settings class: frozen, typed, strict about unknown keys, with a remedy in the error.

A settings class lives beside the code that it configures; only :mod:`hatchway.config` reads settings *files*.
"""

import difflib
import typing
from collections.abc import Mapping
from typing import Any, Self

import pydantic

from hatchway.errors import SettingsError


class Settings(pydantic.BaseModel):
    """Frozen settings; an unknown key is an error that names the nearest valid one."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Validate ``values`` (a decoded TOML or JSON table).

        Raises:
            SettingsError: a key is unknown or a value is not allowed; every offence is listed, each with the value
                received, what is allowed, and for a misspelt key the nearest valid one.
        """
        try:
            return cls.model_validate(values)
        except pydantic.ValidationError as error:
            raise SettingsError("\n".join(_explain(cls, offence) for offence in error.errors())) from None


def flattened(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Write nested settings as one table with dotted names.

    >>> flattened({"seed": 1, "training": {"epochs": 3, "batch": 8}})
    {'seed': 1, 'training.epochs': 3, 'training.batch': 8}
    """
    flat: dict[str, Any] = {}
    for name, part in table.items():
        flat |= flattened(part, f"{before}{name}.") if isinstance(part, dict) else {f"{before}{name}": part}
    return flat


def _explain(model: type[pydantic.BaseModel], offence: Any) -> str:
    """Turn one pydantic offence into a sentence with a remedy."""
    where = ".".join(str(part) for part in offence["loc"]) or "settings"
    if offence["type"] != "extra_forbidden":
        # The fields are tuples, which nobody can write in TOML.
        message = 'Input should be a list, as in ["one", "two"]' if offence["type"] == "tuple_type" else offence["msg"]
        return f"{where} = {offence['input']!r}: {message}"
    allowed = _keys_at(model, offence["loc"][:-1])
    name = str(offence["loc"][-1])
    near = difflib.get_close_matches(name, allowed, n=1)
    # A setting that was written without its table, or under another one.
    meant = _places_of(model, name) or near
    remedy = (
        f"did you mean {' or '.join(map(repr, meant))}?" if meant else f"allowed here: {', '.join(sorted(allowed))}"
    )
    return f"unknown setting {where!r}; {remedy}"


def _places_of(model: type[pydantic.BaseModel], name: str, before: str = "") -> list[str]:
    """List the dotted names of the settings under ``model`` whose last part is ``name``."""
    found: list[str] = []
    for key, field in model.model_fields.items():
        found += [before + key] if key == name else []
        for nested in _nested(field.annotation):
            found += _places_of(nested, name, f"{before}{key}.")
    return found


def _nested(written: Any) -> list[type[pydantic.BaseModel]]:
    """List the settings classes that a field may hold: where one may also be None, it is one of the alternatives."""
    kinds = (written, *typing.get_args(written))
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)]


def _keys_at(model: type[pydantic.BaseModel], path: tuple[Any, ...]) -> list[str]:
    """List the field names of the settings class that sits at ``path`` under ``model``."""
    for part in path:
        field = model.model_fields.get(str(part))
        nested = _nested(field.annotation) if field else []
        if not nested:
            return []
        model = nested[0]
    return list(model.model_fields)
