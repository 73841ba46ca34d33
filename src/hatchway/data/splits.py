"""Splits: which rows train, which validate, which test.

Every function here sees all engagements buyer-major and chronological within a buyer, and answers with one
:class:`~hatchway.data.engagements.Part` a row.
"""

from datetime import UTC, datetime
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import pydantic

from hatchway.data.engagements import Int32, Int64, Part
from hatchway.data.schema import SPLITS
from hatchway.errors import DataError
from hatchway.settings import Settings

SplitProtocol = Literal["given", "leave-one-out", "global-time", "none"]
Parts = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]

SECONDS_A_DAY = 86_400


class SplitSettings(Settings):
    """How the log is split.

    Attributes:
        protocol: ``leave-one-out``: each buyer's last positive is the test and the last but one the validation; buyers
            with fewer than three positives only train. ``global-time``: the last days are the test, the days before
            them the validation, for everybody. ``given``: as the log's column ``split`` says. ``none``: all rows train.
            None: ``given`` where the log has a column ``split``, otherwise ``leave-one-out``.
        validation_fraction: ``given`` only: the share of each buyer's training positives that is moved to validation;
            at least one of a buyer's stays.
        validation_rows: which of them are moved: ``random`` ones, or each buyer's ``last``. As the test rows were
            chosen, or settings are compared by another question than the test asks.
        validation_days: ``global-time`` only: whole days (UTC) of validation, before those of the test; may be 0.
        test_days: ``global-time`` only: whole days (UTC) of test; the last is the day of the last positive.
    """

    protocol: SplitProtocol | None = None
    validation_fraction: float = pydantic.Field(default=0.0, ge=0.0, lt=1.0)
    validation_rows: Literal["random", "last"] = "random"
    validation_days: int = pydantic.Field(default=1, ge=0)
    test_days: int = pydantic.Field(default=1, ge=1)

    @pydantic.model_validator(mode="after")
    def _agree(self) -> "SplitSettings":
        if self.validation_fraction and self.protocol not in ("given", None):
            raise ValueError(
                f"validation_fraction = {self.validation_fraction} goes with protocol 'given' only; {self.protocol!r} "
                "has a rule of its own for validation"
            )
        return self

    def protocol_in(self, *, given: bool) -> SplitProtocol:
        """Return the protocol, or what None stands for in a log with a column ``split`` (``given``), or without one."""
        return self.protocol or ("given" if given else "leave-one-out")

    def settled(self, *, given: bool) -> "SplitSettings":
        """Return the settings with :meth:`protocol_in` written out.

        Raises:
            SettingsError: ``validation_fraction`` does not go with it.
        """
        return SplitSettings.parse(self.model_dump() | {"protocol": self.protocol_in(given=given)})


def leave_one_out(offsets: Int64, buyers: Int32, positive: Bools) -> Parts:
    """Give each buyer's last positive to the test and the last but one to validation, if there are three or more.

    Engagements that are no positives go where the last positive before them went, so that no part begins before its
    positive and nothing that follows the test is known to it.

    Args:
        offsets: [buyers + 1] as in :class:`~hatchway.data.engagements.Engagements`.
        buyers: [E] row number of the buyer.
        positive: [E] whether the row is a positive.

    Raises:
        DataError: nobody has three positives.
    """
    count = np.zeros(len(positive) + 1, np.int64)
    np.cumsum(positive, out=count[1:])
    total = count[offsets[1:]] - count[offsets[:-1]]
    if not (total >= 3).any():
        raise DataError(
            f"split leave-one-out needs buyers with three positives; of {len(total):,} buyers the busiest has "
            f"{total.max(initial=0)}; use split.protocol = 'global-time' or 'none', or count more events as positives"
        )
    from_end = (count[offsets[1:]][buyers] - count[1:]).astype(np.int64)
    parts = np.where(from_end == 0, Part.TEST, np.where(from_end == 1, Part.VALIDATION, Part.TRAIN))
    return np.where(total[buyers] >= 3, parts, Part.TRAIN).astype(np.int8)


def global_time(times: Int64, positive: Bools, settings: SplitSettings) -> Parts:
    """Split at midnights (UTC), counted back from the day of the last positive.

    Args:
        times: [E] Unix seconds.
        positive: [E] whether the row is a positive.
        settings: for ``validation_days`` and ``test_days``.

    Raises:
        DataError: a part that the settings ask for would have no positive.
    """
    last_day = int(times[positive].max()) // SECONDS_A_DAY
    test = (last_day + 1 - settings.test_days) * SECONDS_A_DAY
    validation = test - settings.validation_days * SECONDS_A_DAY
    parts = ((times >= validation).astype(np.int8) + (times >= test)).astype(np.int8)
    counts = np.bincount(parts[positive], minlength=3)
    wanted = [Part.TRAIN, Part.TEST] + [Part.VALIDATION] * (settings.validation_days > 0)
    for part in wanted:
        if not counts[part]:
            first_day = int(times[positive].min()) // SECONDS_A_DAY
            raise DataError(
                f"split global-time leaves no positive for {part.name.lower()}: positives run from {_date(first_day)} "
                f"to {_date(last_day)}, validation would begin on {_date(validation // SECONDS_A_DAY)} and test on "
                f"{_date(test // SECONDS_A_DAY)}; choose other split.validation_days and split.test_days"
            )
    return parts


def given(split: pl.Series) -> Parts:
    """Read the parts from the log's column ``split``.

    Raises:
        DataError: a value is none of train, validation, test, or no row is for training.
    """
    codes = split.replace_strict({name: i for i, name in enumerate(SPLITS)}, default=None, return_dtype=pl.Int8)
    if codes.null_count():
        odd = split.filter(codes.is_null())
        raise DataError(
            f"{len(odd):,} of {len(split):,} engagements have no part in the column 'split' (the first: {odd[0]!r}); "
            f"allowed are {', '.join(SPLITS)}; mend the log, or choose another split.protocol, e.g. 'leave-one-out'"
        )
    if not (codes == Part.TRAIN).any():
        raise DataError(
            f"the log's column 'split' gives no row to train; it has {', '.join(split.unique().sort())}; mend the log, "
            "or choose another split.protocol, e.g. 'leave-one-out'"
        )
    return codes.to_numpy()


def draw_validation(
    parts: Parts,
    positive: Bools,
    buyers: Int32,
    fraction: float,
    generator: np.random.Generator,
    *,
    last: bool = False,
) -> Parts:
    """Move a share of every buyer's training positives to validation: random ones, or the last.

    A buyer with n training positives gives ``floor(fraction * n + u)`` of them, u uniform in [0, 1), which is
    ``fraction * n`` on average, but at most n - 1.

    Args:
        parts: [E] the parts as given.
        positive: [E] whether the row is a positive.
        buyers: [E] row number of the buyer, ascending.
        fraction: the share, above 0 and below 1.
        generator: the stream to draw from.
        last: move each buyer's last ones instead of random ones.

    Raises:
        DataError: the log has validation rows of its own, or the share comes to no row.
    """
    if (parts == Part.VALIDATION).any():
        raise DataError(
            "the log's column 'split' has validation rows already; set split.validation_fraction = 0 to use them"
        )
    rows = np.flatnonzero(positive & (parts == Part.TRAIN))
    own = buyers[rows]
    totals = np.bincount(own, minlength=int(buyers[-1]) + 1)
    quota = np.floor(fraction * totals + generator.random(len(totals)))
    quota = np.minimum(quota, totals - 1)
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(totals) - totals, totals)
    if last:
        chosen = rows[rank >= (totals - quota)[own]]
    else:
        chosen = rows[np.argsort(own + generator.random(len(rows)), kind="stable")][rank < quota[own]]
    moved = parts.copy()
    moved[chosen] = Part.VALIDATION
    if not (moved == Part.VALIDATION).any():
        raise DataError(f"split.validation_fraction = {fraction} of {len(rows):,} training positives comes to none")
    return moved


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * SECONDS_A_DAY, UTC).strftime("%Y-%m-%d")
