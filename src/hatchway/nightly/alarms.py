"""What a night measured of itself, and which of it is beyond its limit."""

from typing import Literal

import pydantic


class Alarm(pydantic.BaseModel):
    """One watched number.

    Attributes:
        name: what is watched, as in Prometheus: lower case, with underscores.
        value: the number; None where there was nothing to measure.
        limit: where the alarm begins.
        side: whether it begins ``above`` or ``below`` the limit.
        raised: whether it did.
        about: what the number is, for a reader.
        done: what the night did about it, where it was raised.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    name: str
    value: float | None
    limit: float
    side: Literal["above", "below"]
    raised: bool
    about: str
    done: str = ""


def above(name: str, value: float | None, limit: float, about: str, done: str = "") -> Alarm:
    """Watch a number that should stay at or below its limit; nothing measured raises nothing.

    >>> above("lost", 0.3, 0.1, "share lost").raised, above("lost", None, 0.1, "share lost").raised
    (True, False)
    """
    raised = value is not None and value > limit
    return Alarm(
        name=name, value=value, limit=limit, side="above", raised=raised, about=about, done=done if raised else ""
    )


def below(name: str, value: float | None, limit: float, about: str, done: str = "") -> Alarm:
    """Watch a number that should stay at or above its limit.

    >>> below("recall", 0.3, 0.9, "recall").raised
    True
    """
    raised = value is not None and value < limit
    return Alarm(
        name=name, value=value, limit=limit, side="below", raised=raised, about=about, done=done if raised else ""
    )
