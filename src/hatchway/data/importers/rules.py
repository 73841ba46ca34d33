"""The rules of rejection: what each column must hold, and the reason that a row gets where it does not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from hatchway.data.importers.lines import BAD, FILE, LINE, Rows
from hatchway.data.schema import ID_COLUMNS, KNOWN_EVENTS, REASONS, REJECTED_TYPES, SPLITS
from hatchway.data.times import RawTimes, judged_times, raw_times
from hatchway.errors import DataError

ROW, REASON = "@row", "@reason"
"""A row's position in the source, and the number of the reason why it is rejected (null for a row to keep)."""

TIME_COLUMNS = ("time", "listed", "gone")
_NUMBERS: Mapping[str, pl.DataType] = {
    "order": pl.Int64(),
    "position": pl.Int64(),
    "weight": pl.Float32(),
    "rating": pl.Float32(),
    "price": pl.Float64(),
}
REASON_NUMBERS = {reason: number for number, reason in enumerate(REASONS)}


@dataclass(frozen=True)
class _Rules:
    """What is computed of a table, step after step, so that no step is computed twice.

    Attributes:
        read: first: columns that the others are made of.
        typed: second: each field with its type.
        reasons: third: (reason, where it holds), in order of precedence.
    """

    read: dict[str, pl.Expr] = field(default_factory=dict)
    typed: dict[str, pl.Expr] = field(default_factory=dict)
    reasons: list[tuple[str, pl.Expr]] = field(default_factory=list)


def judged(rows: Rows, required: Sequence[str], events: Mapping[str, str]) -> pl.LazyFrame:
    """Apply the rules to every row; reads the frame once, for the medians of its times.

    Args:
        rows: the source.
        required: the columns that every row must have: buyer and item, or item alone; and the time, if there is one.
        events: further events, name to the name it is stored under.

    Returns:
        ``@row``, ``@reason`` and the fields: ids and the user's own columns as in the source, the others with their
        types.

    Raises:
        DataError: a column cannot hold what its name says.
    """
    schema = rows.frame.collect_schema()
    fields = [name for name in schema.names() if not name.startswith("@")]
    medians = _medians(rows, {name: schema[name] for name in fields if name in TIME_COLUMNS})
    rules = _Rules(reasons=[("fields", pl.col(BAD).is_not_null())])
    for name in sorted(fields, key=lambda name: name not in ID_COLUMNS):
        if name in ID_COLUMNS:
            _id(rules, name, schema[name], name in required, rows.from_text)
        elif name in TIME_COLUMNS:
            raw = raw_times(name, schema[name], rows.time_format)
            _time(rules, name, schema[name], raw, medians[name])
            if name in required:
                rules.reasons.append((f"no {name}", pl.col(f"@given:{name}").not_()))
        elif name in _NUMBERS:
            _number(rules, name, schema[name])
        elif name in ("event", "split"):
            _word(rules, name, schema[name], events)
        else:
            rules.typed[name] = _own(name, schema[name], from_text=rows.from_text)
    codes = [pl.when(holds).then(pl.lit(REASON_NUMBERS[reason], pl.UInt8)) for reason, holds in rules.reasons]
    return (
        rows.frame.with_row_index(ROW)
        .with_columns(pl.col(ROW).cast(pl.Int64), *(value.alias(name) for name, value in rules.read.items()))
        .with_columns(value.alias(f"@typed:{name}") for name, value in rules.typed.items())
        .with_columns(pl.coalesce(codes).alias(REASON))
        .select(ROW, REASON, *(pl.col(f"@typed:{name}").alias(name) for name in fields))
    )


def rejected_rows(rows: Rows, away: pl.DataFrame) -> pl.DataFrame:
    """Return the rows turned away as they stand in the source: file, line, reason, text.

    Args:
        rows: the source.
        away: ``@row`` and ``@reason`` of each.
    """
    if away.is_empty():
        return pl.DataFrame(schema=dict(REJECTED_TYPES))
    schema = rows.frame.collect_schema()
    names = rows.shown or [name for name in schema.names() if not name.startswith("@")]
    flat = [name for name in names if not schema[name].is_nested() and schema[name] not in (pl.Binary, pl.Object)]
    text = pl.concat_str([pl.col(name).cast(pl.String).fill_null("") for name in flat], separator=rows.separator)
    reasons = {number: reason for reason, number in REASON_NUMBERS.items()}
    found = rows.frame.with_row_index(ROW).with_columns(pl.col(ROW).cast(pl.Int64)).join(away.lazy(), on=ROW)
    named = found.select(
        ROW,
        pl.col(FILE).alias("file"),
        pl.col(LINE).alias("line"),
        pl.col(REASON).replace_strict(reasons, return_dtype=pl.String).alias("reason"),
        pl.coalesce(BAD, text).alias("text"),
    )
    return named.collect(engine="streaming").sort(ROW).drop(ROW)


def _medians(rows: Rows, times: Mapping[str, pl.DataType]) -> dict[str, float | None]:
    """Return the median of the numbers in each column of times."""
    if not times:
        return {}
    numbers = [raw_times(name, dtype, rows.time_format).number.median().alias(name) for name, dtype in times.items()]
    return rows.frame.filter(pl.col(BAD).is_null()).select(numbers).collect(engine="streaming").row(0, named=True)


def _given(name: str, dtype: pl.DataType) -> pl.Expr:
    """Say where something is written: neither null nor blank."""
    given = pl.col(name).is_not_null()
    return given & (pl.col(name).str.strip_chars() != "") if dtype == pl.String else given


def _id(rules: _Rules, name: str, dtype: pl.DataType, required: bool, from_text: bool) -> None:
    value = pl.col(name)
    typed = pl.col(f"@typed:{name}")
    if isinstance(dtype, (pl.Categorical, pl.Enum)) or dtype == pl.Null:
        value = value.cast(pl.String)
    elif dtype == pl.String:
        value = value.str.strip_chars() if from_text else value
        value = pl.when(value != "").then(value)
    elif dtype.is_integer():
        value = value.cast(pl.Int64, strict=False)
        rules.reasons.append(("number not understood", pl.col(name).is_not_null() & typed.is_null()))
    else:
        raise DataError(
            f"column {name!r} is {dtype}; ids must be integers or strings: cast the column (floats that stand for "
            "integers come from missing values) and write the file again"
        )
    if required:
        rules.reasons.append((f"no {name}", typed.is_null()))
    rules.typed[name] = value


def _time(rules: _Rules, name: str, dtype: pl.DataType, raw: RawTimes, median: float | None) -> None:
    read = RawTimes(pl.col(f"@number:{name}"), pl.col(f"@instant:{name}"))
    rules.read.update(
        {
            f"@number:{name}": raw.number,
            f"@instant:{name}": raw.instant,
            f"@given:{name}": _given(name, dtype),
        }
    )
    seconds, elsewhere, absurd = judged_times(read, median)
    rules.typed[name] = seconds
    rules.reasons.extend(
        [
            ("time not understood", pl.col(f"@given:{name}") & pl.col(f"@typed:{name}").is_null()),
            ("time in another unit", elsewhere),
            ("absurd time", absurd),
        ]
    )


def _number(rules: _Rules, name: str, dtype: pl.DataType) -> None:
    read = pl.col(f"@number:{name}")
    if dtype == pl.String:
        number = pl.col(name).str.strip_chars().cast(pl.Float64, strict=False)
    elif dtype.is_numeric() or dtype in (pl.Null, pl.Boolean):
        number = pl.col(name).cast(pl.Float64)
    else:
        raise DataError(f"column {name!r} is {dtype} and must hold numbers")
    rules.read[f"@number:{name}"] = number
    typed, kind = (read.fill_null(1.0) if name == "weight" else read), _NUMBERS[name]
    typed = typed.cast(kind, strict=False)
    if kind.is_integer() and (dtype == pl.String or dtype.is_integer()):
        # Not by way of a float, which has 53 bits: an order may be a time in nanoseconds.
        exact = pl.col(name).str.strip_chars() if dtype == pl.String else pl.col(name)
        typed = pl.coalesce(exact.cast(kind, strict=False), typed)
    rules.typed[name] = typed
    known = pl.col(f"@typed:{name}")
    beyond = known.is_null() if kind.is_integer() else known.is_infinite()
    bad = _given(name, dtype) & (read.is_null() | read.is_finite().not_() | beyond)
    if name in ("weight", "price", "position"):
        bad = bad | (read < 0)
    if name == "order":
        bad = bad | read.is_null()
    rules.reasons.append(("number not understood", bad))


def _word(rules: _Rules, name: str, dtype: pl.DataType, events: Mapping[str, str]) -> None:
    if dtype != pl.String and not isinstance(dtype, (pl.Categorical, pl.Enum)):
        raise DataError(f"column {name!r} is {dtype} and must hold text")
    names = {known: known for known in KNOWN_EVENTS} | {given.lower(): kept for given, kept in events.items()}
    if name == "split":
        names = {split: split for split in SPLITS}
    word = pl.col(name).cast(pl.String).str.strip_chars().str.to_lowercase()
    rules.typed[name] = word.replace_strict(names, default=None, return_dtype=pl.String)
    rules.reasons.append((f"unknown {name}", pl.col(f"@typed:{name}").is_null()))


def _own(name: str, dtype: pl.DataType, *, from_text: bool) -> pl.Expr:
    """Take a column of the user's own as it is; a blank in a text file is a null."""
    if dtype == pl.String and from_text:
        return pl.when(_given(name, dtype)).then(pl.col(name))
    return pl.col(name)


INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
"""Text that an integer gives back unchanged."""

_PADDED = r"^\s*[+-]?0[0-9]"


def integers_only(name: str) -> pl.Expr:
    """Say whether every value of a String column (nulls aside) is an integer that survives the round trip."""
    return pl.col(name).str.contains(INTEGER).all()


def settled(frame: pl.LazyFrame, names: list[str]) -> Callable[[str], pl.Expr]:
    """Find the types of the user's own text columns: Int64, Float64 or String, whichever every value fits.

    Numbers with leading zeros (postcodes, article numbers) stay text; NaN becomes null.

    Returns:
        a function from the column's name to its expression.
    """
    numbers = [pl.col(name).str.strip_chars().cast(pl.Float64, strict=False) for name in names]
    flags = frame.select(
        *(integers_only(name).alias(f"{name}:integer") for name in names),
        *(
            (number.is_not_null() | pl.col(name).is_null()).all().alias(f"{name}:float")
            for name, number in zip(names, numbers, strict=True)
        ),
        *(pl.col(name).str.contains(_PADDED).any().alias(f"{name}:padded") for name in names),
        *(pl.col(name).is_not_null().any().alias(f"{name}:given") for name in names),
    )
    is_so = flags.collect(engine="streaming").row(0, named=True)

    def typed(name: str) -> pl.Expr:
        if not is_so[f"{name}:given"] or is_so[f"{name}:padded"]:
            return pl.col(name)
        if is_so[f"{name}:integer"]:
            return pl.col(name).cast(pl.Int64)
        if is_so[f"{name}:float"]:
            return pl.col(name).str.strip_chars().cast(pl.Float64).fill_nan(None)
        return pl.col(name)

    return typed
