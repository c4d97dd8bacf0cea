"""Clock: columns of time as instants, and the hour and the weekday of them as context."""

__all__ = [
    "DAYS",
    "clock_part",
    "clock_value",
    "instants",
    "request_clock",
    "table_columns",
    "with_clock",
]

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from math import isfinite
from typing import Any

import polars as pl

from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.support.errors import DataError, shown

_PARTS = ("hour", "weekday")
_SECOND, _DAY = 1_000_000, 86_400_000_000
# From here up a number counts milliseconds, then microseconds, then nanoseconds: as seconds, the
# first would be in the year 5138.
_UNITS = ((1e11, _SECOND), (1e14, 1000), (1e17, 1))
# A whole number such as 20261101 is a date: as seconds, all would be in the summer of 1970.
DAYS = (19700101, 21001231)
"""The first and the last date that is written as a whole number."""

_DAY_FORM = "%Y%m%d"
_OFFSET = r"(Z|[+-]\d\d:?\d\d)$"
_FORMATS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d", _DAY_FORM)
_EXPECTED = (
    "dates, times, ISO text such as 2026-11-01T18:30:00, whole numbers such as 20261101, or "
    "seconds since 1970"
)


def clock_part(name: str) -> tuple[str, str] | None:
    """Return the column and the part of it that a context entry asks for, if it asks for one.

    >>> clock_part("shown_at:hour"), clock_part("region")
    (('shown_at', 'hour'), None)
    """
    column, _, part = name.rpartition(":")
    return (column, part) if column and part in _PARTS else None


def table_columns(context: Sequence[str], there: Iterable[str]) -> list[str]:
    """Return the columns of a table that context entries are made of."""
    known = set(there)
    asked = {name: clock_part(name) for name in context if name not in known}
    return [name if (part := asked.get(name)) is None else part[0] for name in context]


def with_clock(frame: pl.DataFrame, context: Sequence[str]) -> list[pl.Series]:
    """Return the columns of some context entries; hours are 0 to 23, weekdays 1 (Monday) to 7."""
    columns = []
    for name in context:
        part = None if name in frame.columns else clock_part(name)
        column = frame[name] if part is None else _part_of(frame[part[0]], part[1])
        columns.append(column.alias(name))
    return columns


def _part_of(series: pl.Series, part: str) -> pl.Series:
    wall = _microseconds(series, wall=True)
    if part == "hour":
        return wall // (3600 * _SECOND) % 24
    # The first of January 1970 was a Thursday.
    return (wall // _DAY + 3) % 7 + 1


def clock_value(value: Any, part: str) -> int | None:
    """Return the hour or the weekday of one time, the same as in a column."""
    if value is None:
        return None
    if isinstance(value, datetime | date):
        wall = value
    elif isinstance(value, str):
        wall = _parsed(value)
    elif _is_number(value) and (day := _day(value)) is not None:
        wall = day
    elif _is_number(value):
        micros = int(value * _unit(value)) if abs(value) < _UNITS[-1][0] else int(value) // 1000
        try:
            wall = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
        except OverflowError:
            raise DataError(f"A time must be one of {_EXPECTED}. Got {shown(value)}.") from None
    else:
        raise DataError(f"A time must be one of {_EXPECTED}. Got {shown(value)}.")
    if part == "weekday":
        return wall.isoweekday()
    return wall.hour if isinstance(wall, datetime) else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _day(value: float) -> datetime | None:
    if not DAYS[0] <= value <= DAYS[1] or value != int(value):
        return None
    try:
        return datetime.strptime(str(int(value)), _DAY_FORM)
    except ValueError:
        return None


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise DataError(f"A time must be one of {_EXPECTED}. Got {shown(text)}.") from None


def _unit(value: float) -> int:
    return next(micros for most, micros in _UNITS if abs(value) < most)


def instants(series: pl.Series) -> pl.Series:
    """Return times as microseconds since 1970 in UTC, null where there is none.

    Raises:
        DataError: The column is of a type that is no time.
    """
    return _microseconds(series, wall=False)


def _microseconds(series: pl.Series, *, wall: bool) -> pl.Series:
    """Return microseconds since 1970, of the clock on the wall where the column has an offset."""
    require_polars_threads(f"A column of times, '{series.name}',")
    series = series.alias("time")
    kind = series.dtype
    if kind == pl.Null:
        return series.cast(pl.Int64)
    if isinstance(kind, pl.Date):
        return series.cast(pl.Int64) * _DAY
    if isinstance(kind, pl.Datetime):
        local = series.dt.replace_time_zone(None) if wall and kind.time_zone else series
        return local.dt.timestamp("us")
    if kind.is_numeric():
        return _from_epoch(series)
    if isinstance(kind, pl.String | pl.Categorical | pl.Enum):
        return _from_text(series.cast(pl.String), wall=wall)
    raise DataError(f"A time column must hold {_EXPECTED}. Got type {kind}; convert it first.")


def _from_epoch(series: pl.Series) -> pl.Series:
    x = pl.col("time")
    micros = (x.cast(pl.Int64, strict=False) // 1000) if series.dtype.is_integer() else x / 1000
    for most, unit in reversed(_UNITS):
        micros = pl.when(x.cast(pl.Float64).abs() < most).then(x * unit).otherwise(micros)
    whole = x.cast(pl.Int64, strict=False)
    day = whole.cast(pl.String).str.to_date(_DAY_FORM, strict=False).cast(pl.Int64) * _DAY
    dated = (x == whole) & x.is_between(*DAYS) & day.is_not_null()
    micros = pl.when(dated).then(day).otherwise(micros)
    return series.to_frame().select(micros.cast(pl.Int64, strict=False).alias("time"))["time"]


def _from_text(series: pl.Series, *, wall: bool) -> pl.Series:
    text = pl.col("time").str.strip_chars().str.replace("T", " ", literal=True)
    plain = text.str.replace(_OFFSET, "").str.strip_chars()
    parsed = [plain.str.to_datetime(form, strict=False, time_unit="us") for form in _FORMATS]
    micros = pl.coalesce(parsed).dt.timestamp("us")
    if not wall:
        away = text.str.extract(r"([+-]\d\d:?\d\d)$").str.replace(":", "", literal=True)
        minutes = away.str.slice(1, 2).cast(pl.Int64) * 60 + away.str.slice(3, 2).cast(pl.Int64)
        sign = pl.when(away.str.starts_with("-")).then(-1).otherwise(1)
        # A date alone ends like an offset would; it has none.
        has = away.is_not_null() & text.str.contains(" ", literal=True)
        micros = micros - pl.when(has).then(sign * minutes * 60 * _SECOND).otherwise(0)
    return series.to_frame().select(micros.alias("time"))["time"]


def request_clock(context: Mapping[str, Any], columns: Sequence[str]) -> Mapping[str, Any]:
    """Return the context of a request with the hour and weekday of its times, where asked for.

    The times themselves are left out, unless they are asked for too. A list is one value for each
    candidate.

    >>> request_clock({"shown_at": "2026-11-01T18:30:00"}, ["shown_at:hour"])["shown_at:hour"]
    18
    """
    if not any(":" in name for name in columns):
        return context
    asked = {name: part for name in columns if name not in context and (part := clock_part(name))}
    used = {column for column, _ in asked.values()} - set(columns)
    asked_context = {name: value for name, value in context.items() if name not in used}
    for name, (column, wanted) in asked.items():
        if isinstance(times := context.get(column), list):
            asked_context[name] = [clock_value(time, wanted) for time in times]
        elif column in context:
            asked_context[name] = clock_value(times, wanted)
    return asked_context
