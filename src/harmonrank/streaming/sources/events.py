"""Events: what a stream is made of, as one frame, and what is wrong with those that are malformed.

An exposure says that an item was shown: request, item, time, perhaps user and position, and the
score, context and truth columns that the schema names. Feedback says what came of it: request,
item, time, objective and value (1 if left out; 0 says nothing). The frame holds both kinds, in
order, with nulls where a column does not apply:

    event  request  item  time  user  position  SCORES…  CONTEXT…  objective  value  fault  raw

`fault` says why a row is malformed, and `raw` then holds it as it came, as JSON.
"""

__all__ = ["EVENT_COLUMNS", "TYPES", "Converted", "EventForm", "converted", "nulls", "series_of"]

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import polars as pl

from harmonrank.data import Schema
from harmonrank.data.clock import clock_part, instants
from harmonrank.data.reading.checking import is_lost
from harmonrank.support.errors import DataError, UsageError, did_you_mean

KINDS = ("text", "integer", "number")
"""What a context column may hold."""

TIME = pl.Datetime("us", "UTC")
TYPES: dict[str, pl.DataType] = {
    "id": pl.String(),
    "time": TIME,
    "text": pl.String(),
    "integer": pl.Int64(),
    "number": pl.Float64(),
    "unknown": pl.Null(),
}
"""The type of each kind of column in the canonical frame."""

_PLAIN = (str, int, float, bool)
_LARGEST_WHOLE = 2**53
_END_OF_TIME = 2**57  # in the year 6537: a later one could not be printed, and sums would overflow
_LARGEST_FLOAT = 10**300
_ISO = "%Y-%m-%dT%H:%M:%S%.fZ"
_FIRST = TYPES | {"time": pl.String()}
"""What most values of a kind are; a column of nothing else is read at once."""
EVENT_COLUMNS = ("event", "request", "item", "time", "user", "position")
"""What the frame begins with."""
_TAKEN = ("event", "request", "time", "objective", "value", "fault", "raw")
_SHARED = ("item", "user", "position")


class Converted(NamedTuple):
    """A column as its kind, and where a value is none of that kind; None if nowhere."""

    values: pl.Series
    bad: pl.Series | None = None


def converted(series: pl.Series, kind: str) -> Converted:
    """Return a column as its kind.

    What becomes of a value depends on the value and the column's type alone. Null and NaN are
    null, and right.
    """
    series = series.alias("")  # its own name may be a pattern to polars
    if _is_canonical(series, kind):
        return Converted(series)
    known = ~is_lost(series)
    values = _READERS[kind](series)
    bad = known & values.is_null()
    return Converted(values, bad if bad.any() else None)


def _is_canonical(series: pl.Series, kind: str) -> bool:
    """Tell whether a column is one that our own sinks write, with nothing to change in it."""
    if series.dtype != TYPES[kind]:
        return False
    if kind == "number":
        return not series.is_nan().any()
    if kind == "time":
        micros = series.to_physical()
        return not ((micros < 0) | (micros >= _END_OF_TIME)).any()
    return kind != "id" or not (series == "").any()


def nulls(kind: pl.DataType, rows: int) -> pl.Series:
    """Return a column without a value."""
    return pl.Series("", [None], kind).new_from_index(0, rows)


def _times(series: pl.Series) -> pl.Series:
    try:
        micros = _text_times(series) if series.dtype == pl.String else instants(series)
    except DataError:
        return nulls(TIME, len(series))
    # What is before 1970 is a clock that was never set.
    micros = micros.set(~((micros >= 0) & (micros < _END_OF_TIME)) & micros.is_not_null(), None)
    return micros.alias("").cast(TIME)


def _text_times(series: pl.Series) -> pl.Series:
    # What our own sinks write is read fast; all else is left to the many forms of a log.
    micros = series.str.to_datetime(_ISO, strict=False, time_unit="us").dt.timestamp("us")
    rest = (micros.is_null() & series.is_not_null()).arg_true()
    return micros.scatter(rest, instants(series.gather(rest))) if len(rest) else micros


def _texts(series: pl.Series) -> pl.Series:
    if isinstance(series.dtype, pl.String | pl.Categorical | pl.Enum):
        return series.cast(pl.String)
    if series.dtype.is_temporal():
        return series.dt.to_string("iso")
    return nulls(pl.String(), len(series))


def _ids(series: pl.Series) -> pl.Series:
    # A truth value is a mistake, where a whole number names something.
    if series.dtype.is_numeric():
        return _whole(series).cast(pl.String)
    text = nulls(pl.String(), len(series)) if series.dtype.is_temporal() else _texts(series)
    # An id without a letter is none.
    return text.set(text == "", None) if (text == "").any() else text


def _whole(series: pl.Series) -> pl.Series:
    held = series.dtype
    if held.is_float():
        # pandas turns a column of whole numbers into fractions as soon as one is missing.
        exact = (series == series.floor()) & (series.abs() <= _LARGEST_WHOLE)
        series = series.set(~exact, None) if not exact.all() else series
    elif not held.is_integer() and held != pl.Boolean:
        return nulls(pl.Int64(), len(series))
    return series.cast(pl.Int64, strict=False)


def _numbers(series: pl.Series) -> pl.Series:
    if not series.dtype.is_numeric() and series.dtype != pl.Boolean:
        return nulls(pl.Float64(), len(series))
    return series.cast(pl.Float64).fill_nan(None)


_READERS: dict[str, Callable[[pl.Series], pl.Series]] = {
    "id": _ids,
    "time": _times,
    "text": _texts,
    "integer": _whole,
    "number": _numbers,
    "unknown": lambda series: nulls(pl.Null(), len(series)),
}


def series_of(values: Sequence[Any], kind: str) -> Converted:
    """Return JSON values as their kind; each counts by its own type."""
    try:
        # Strict, so that no value is turned into what it is not.
        return converted(pl.Series("", values, _FIRST[kind], strict=True), kind)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        pass
    column, by_type = nulls(TYPES[kind], len(values)), dict[type, list[int]]()
    for row, value in enumerate(values):
        if (held := _type_of(value, kind)) is not None:
            by_type.setdefault(held, []).append(row)
    for held, rows in by_type.items():
        part = pl.Series("", [held(values[row]) for row in rows], strict=True)
        column = column.scatter(rows, converted(part, kind).values)
    bad = column.is_null() & pl.Series([not _is_nothing(value) for value in values])
    return Converted(column, bad if bad.any() else None)


def _is_nothing(value: Any) -> bool:
    return value is None or value != value  # NaN


def _type_of(value: Any, kind: str) -> type | None:
    """Return what a value is read as; None if it is nothing that a column holds."""
    held = type(value)
    if held is int and kind == "number":
        return float if abs(value) < _LARGEST_FLOAT else None
    if held is int and not -(2**63) <= value < 2**63:
        return None
    return held if held in _PLAIN else None


def kind_of(held: pl.DataType) -> str | None:
    """Return the kind of context that a type is, None if nothing tells."""
    if held.is_integer() or held == pl.Boolean:
        return "integer"
    if held.is_numeric():
        return "number"
    return None if held == pl.Null else "text"


@dataclass(frozen=True)
class EventForm:
    """Turns raw rows into the canonical frame of a schema's events.

    Attributes:
        schema: Which columns exposures have.
        kinds: What each context column holds; `settled` finds out those that are not named.
    """

    schema: Schema
    kinds: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        schema, context = self.schema, self.context
        for name, kind in self.kinds.items():
            if name not in context:
                hint = did_you_mean(name, context) if context else "There is no context."
                raise UsageError(f"`kinds` names '{name}', which is no context column. {hint}")
            if kind not in KINDS:
                raise UsageError(f"The kind of '{name}' must be one of {', '.join(KINDS)}.")
        own = (*schema.names, *self.numbers, *context)
        for name in own:
            reserved = name in (*_TAKEN, schema.request, schema.time, schema.position)
            if reserved or (name in _SHARED and name not in context) or own.count(name) > 1:
                raise UsageError(
                    f"A stream has a column '{name}' already; rename the one of the schema."
                )

    @cached_property
    def context(self) -> tuple[str, ...]:
        """The context columns that exposures carry; hours of `time` need none."""
        schema = self.schema
        parts = {name: clock_part(name) for name in schema.context}
        columns = [name if (part := parts[name]) is None else part[0] for name in schema.context]
        known = ("time", schema.time, *_SHARED)
        return tuple(name for name in dict.fromkeys(columns) if name not in known)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The columns of exposures that hold numbers: scores and true probabilities."""
        return (*self.schema.score_columns, *self.schema.truth.values())

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns of exposures beyond those of every event, and the kind of each."""
        context = {name: self.kinds.get(name, "unknown") for name in self.context}
        return dict.fromkeys(self.numbers, "number") | context

    @cached_property
    def kinds_of_all(self) -> dict[str, str]:
        """The columns of the canonical frame, in order, without faults, and the kind of each."""
        first = dict.fromkeys(EVENT_COLUMNS, "id") | {"time": "time", "position": "integer"}
        return {**first, **self.columns, "objective": "id", "value": "number"}

    @cached_property
    def types(self) -> dict[str, pl.DataType]:
        """The columns of the canonical frame, in order, and their types."""
        own = {name: TYPES[kind] for name, kind in self.kinds_of_all.items()}
        return {**own, "fault": pl.String(), "raw": pl.String()}

    def empty(self) -> pl.DataFrame:
        """Return the canonical frame without a row."""
        return pl.DataFrame(schema=self.types)

    def unsettled(self) -> list[str]:
        """Return the context columns of which nothing has told yet what they hold."""
        return [name for name in self.context if name not in self.kinds]

    def with_kinds(self, kinds: Mapping[str, str]) -> Self:
        """Return the form that knows of more columns what they hold."""
        return replace(self, kinds={**self.kinds, **kinds})

    def settled(self, columns: Mapping[str, pl.Series]) -> Self:
        """Return the form with the kinds that raw columns tell."""
        there = {name: columns[name] for name in self.unsettled() if name in columns}
        kinds = {
            name: kind_of(raw.dtype) for name, raw in there.items() if raw.null_count() < len(raw)
        }
        return self.with_kinds({name: kind for name, kind in kinds.items() if kind is not None})
