"""Rules: what becomes of the columns and values that a raw file has, by its declaration."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import reduce
from hashlib import blake2b

import msgspec
import numpy as np
import polars as pl

from harmonrank.support import DataError, shown
from harmonrank_lab.upstream.logs._declaration import ColumnRule, Roles

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_BUCKETS = 20
"""Users fall into 2^20 buckets by a hash of their id, and buckets are never divided."""

_TYPES: dict[str, type[pl.DataType]] = {"uint8": pl.UInt8, "int16": pl.Int16, "int32": pl.Int32}
_TYPES |= {"int64": pl.Int64, "float32": pl.Float32, "float64": pl.Float64, "text": pl.String}
_TIMES = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")
_YES, _NO = ("1", "true", "t", "yes", "y"), ("0", "false", "f", "no", "n")

_FROM_CLOCK = ("hour", "weekday")
_DEFAULTS = {"user": "id", "item": "id", "request": "id", "id": "id", "numeric": "number"}
_DEFAULTS |= {"labels": "label", "feedback": "number", "history": "id"}


@dataclass(frozen=True)
class RowClock:
    """When a row was shown.

    Attributes:
        column: Its source column.
        rule: How that is read.
        utc_offset: Hours from UTC to the clock of the users.
    """

    column: str
    rule: ColumnRule
    utc_offset: float

    def ms(self) -> pl.Expr:
        """Return milliseconds since 1970 in UTC, null where the value is no time."""
        value, how = pl.col(self.column), self.rule.transform
        if self.rule.whole or how in ("ms", "s"):
            number = _number(value, self.rule)
            return number if how != "s" else (number * 1000).cast(pl.Int64, strict=False)
        local = int(self.utc_offset * _HOUR_MS)
        if self.rule.format is not None:
            time = value.str.to_datetime(self.rule.format, strict=False, time_unit="ms")
            aware = "%z" in self.rule.format
            return time.cast(pl.Int64) - (0 if aware else local)
        return _iso(value, local)

    def hour(self) -> pl.Expr:
        """Return the hour of the day by the users' clock."""
        return (self._local() // _HOUR_MS) % 24

    def weekday(self) -> pl.Expr:
        """Return the day of the week by the users' clock, 0 for Monday."""
        return (self._local() // _DAY_MS + 3) % 7

    def _local(self) -> pl.Expr:
        return self.ms().cast(pl.Int64) + int(self.utc_offset * _HOUR_MS)


def _number(value: pl.Expr, rule: ColumnRule) -> pl.Expr:
    return value if rule.whole else value.cast(pl.Float64, strict=False)


def _iso(value: pl.Expr, local: int) -> pl.Expr:
    """Return the milliseconds of ISO 8601 text: a date, a time, and an offset or none."""
    text = value.str.strip_chars().str.replace("T", " ", literal=True)
    offset = text.str.extract_groups(r"([+-])(\d{2}):?(\d{2})$")
    sign = pl.when(offset.struct[0] == "-").then(-1).otherwise(1)
    hours, minutes = (offset.struct[k].cast(pl.Int64, strict=False) for k in (1, 2))
    there = pl.when(text.str.ends_with("Z")).then(0).otherwise(sign * (60 * hours + minutes))
    # A date ends like an offset does, so an offset must stand behind a time.
    shift = pl.when(text.str.contains(":")).then(there)
    without = text.str.replace(r"(Z|[+-]\d{2}:?\d{2})$", "")
    bare = pl.when(shift.is_not_null()).then(without).otherwise(text).str.strip_chars()
    tried = [bare.str.to_datetime(form, strict=False, time_unit="ms") for form in _TIMES]
    ms = reduce(lambda a, b: pl.coalesce(a, b), tried).cast(pl.Int64)
    return ms - (shift * 60_000).fill_null(local)


def transformed(name: str, rule: ColumnRule, column: str, clock: RowClock | None) -> pl.Expr:
    """Return a column that is one value of its source, or of the clock."""
    value = _value(rule, column, clock)
    if rule.missing is not None:
        value = value.fill_null(rule.missing)
    if rule.at_least is not None:
        value = (value.cast(pl.Float64, strict=False) >= rule.at_least).cast(pl.UInt8)
    if rule.type is not None:
        value = value.cast(_TYPES[rule.type], strict=False)
    return value.alias(name)


def _value(rule: ColumnRule, column: str, clock: RowClock | None) -> pl.Expr:
    how, value = rule.transform, pl.col(column) if column else pl.lit(None)
    if how in ("hour", "weekday", "hourmin"):
        assert clock is not None
        if how == "hourmin":
            return _hourmin(value if rule.whole else _code(value), clock)
        return clock.hour() if how == "hour" else clock.weekday()
    number = _number(value, rule)
    made = {
        "code": _code(value),
        "not_negative": pl.when(_code(value) >= 0).then(_code(value)),
        "number": number,
        "positive": pl.when(number > 0).then(number),
        "day": value.str.to_date(rule.format or "%Y-%m-%d", strict=False).cast(pl.Int32),
        "label": value if rule.whole else _label(value),
        "not": 1 - (value if rule.whole else _label(value)),
        "id": value if rule.whole else value.map_batches(_hashed, return_dtype=pl.Int64),
    }
    return made.get(how or "", value)


def _code(value: pl.Expr) -> pl.Expr:
    """Return a whole number: where a column has nulls, a file often has 3.0 for 3."""
    return value.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)


def _label(value: pl.Expr) -> pl.Expr:
    word = value.str.strip_chars().str.to_lowercase()
    number = word.cast(pl.Float64, strict=False)
    known = pl.when(word.is_in(_YES)).then(1.0).when(word.is_in(_NO)).then(0.0)
    return known.otherwise(number).cast(pl.UInt8, strict=False)


def _hashed(series: pl.Series) -> pl.Series:
    """Return ids that are text as whole numbers of 63 bits.

    Text that is a number of up to 18 digits is that number; any other text is hashed to a number
    that has more.
    """
    plain = series.str.contains(r"^(0|[1-9]\d{0,17})$")
    number = series.set(~plain, None).cast(pl.Int64).alias(series.name)
    words = series.filter(~plain).drop_nulls().unique()
    if words.is_empty():
        return number
    digests = (blake2b(word.encode(), digest_size=8).digest() for word in words)
    codes = [(1 << 62) | int.from_bytes(digest, "big") >> 2 for digest in digests]
    table = pl.DataFrame({"word": words, "code": pl.Series(codes, dtype=pl.Int64)})
    coded = series.rename("word").to_frame().join(table, "word", "left", maintain_order="left")
    return number.zip_with(plain.fill_null(value=False), coded["code"])


def _hourmin(value: pl.Expr, clock: RowClock) -> pl.Expr:
    """Return the hour of `hourmin`: 1530 is 15, 900 is 9, and 5, which has no minutes, is 5.

    But 5 is 0 where the clock itself says five past midnight. Where the value is missing or
    none of a day, the clock decides.
    """
    long = pl.when(value >= 24).then(value // 100)
    written = long.when(_past_midnight(value, clock)).then(0).otherwise(value)
    return pl.when(written.is_between(0, 23)).then(written).otherwise(clock.hour())


def _past_midnight(value: pl.Expr, clock: RowClock) -> pl.Expr:
    return (clock.hour() == 0) & (clock.ms() // 60_000 % 60 == value)


def oddity(name: str, rule: ColumnRule, column: str, clock: RowClock | None) -> tuple[str, pl.Expr]:
    """Return what is odd about a value, and where it is so; the text is empty if nothing can be."""
    value = _number(pl.col(column), rule)
    if rule.transform == "positive":
        return f"{name} is 0: null", value <= 0
    if rule.transform == "not_negative":
        return f"{name} below 0: null", value < 0
    if rule.transform == "hourmin" and clock is not None:
        bare = value.is_between(1, 23) & ~_past_midnight(value, clock)
        return f"{column} without minutes: taken as the hour", bare
    return "", pl.lit(value=False)


def user_bucket(user: np.ndarray) -> np.ndarray:
    """Return the top bits of splitmix64, which spreads neighbouring ids evenly."""
    h = user.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((h ^ (h >> np.uint64(31))) >> np.uint64(64 - _BUCKETS)).astype(np.int64)


@dataclass(frozen=True)
class Made:
    """A column to be written.

    Attributes:
        name: What it will be called.
        role: What it is for, by the declaration's word.
        rule: How it is made.
        source: The column of the file that it is made of; empty if it is made of the time.
        place: Of a column with many values: which of them, from 0 on.
    """

    name: str
    role: str
    rule: ColumnRule
    source: str
    place: int = 0

    def expression(self, clock: RowClock | None) -> pl.Expr:
        """Return how it is made."""
        if self.role == "time":
            assert clock is not None
            return clock.ms().cast(pl.Int64, strict=False).alias(self.name)
        if self.role == "multi":
            values = pl.col(self.source).str.split(self.rule.separator)
            value = values.list.get(self.place, null_on_oob=True).str.strip_chars()
            value = pl.when(value != "").then(value)
            kind = pl.Int64 if self.rule.whole else pl.String
            return value.cast(kind, strict=False).alias(self.name)
        made = transformed(self.name, self.rule, self.source, clock)
        # Number 0 stands for no item where a list of earlier ones is filled up.
        return pl.when(made > 0).then(made).alias(self.name) if self.role == "history" else made


def resolved(roles: Roles, role: str, name: str, there: Collection[str]) -> list[Made]:
    """Return the columns that a declared one becomes: none if it may be absent and is.

    Raises:
        KeyError: It is absent and may not be.
    """
    rule = roles.rule(name)
    while True:
        names = rule.names(name)
        source = next((n for n in names if n in there), None)
        if rule.transform in _FROM_CLOCK:
            source = ""
        if source is not None:
            break
        if rule.otherwise is None:
            if roles.is_optional(name):
                return []
            raise KeyError(names[0])
        rule = rule.otherwise
    rule = _completed(rule, role, is_code=name in roles.codes)
    if role != "multi":
        return [Made(name, role, rule, source)]
    first = Made(name, role, rule, source)
    others = (replace(first, name=f"{name}_{k + 1}", place=k) for k in range(1, rule.keep))
    return [first, *others]


def _completed(rule: ColumnRule, role: str, *, is_code: bool) -> ColumnRule:
    """Return a rule with the transform of its role, where it names none."""
    if rule.transform is not None or role in ("time", "multi"):
        return rule
    if role == "categorical":
        return msgspec.structs.replace(rule, transform="code") if is_code else rule
    if rule.at_least is not None or rule.whole:
        return rule
    return msgspec.structs.replace(rule, transform=_DEFAULTS.get(role))


def cleaned(frame: pl.DataFrame, made: Sequence[Made], clock: RowClock | None) -> pl.DataFrame:
    """Return the columns to be written."""
    try:
        columns = frame.select(m.expression(clock) for m in made)
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(
            f"The declared columns cannot be made: {reason}; check `format`, `missing` and `type`."
        ) from None
    for m in made:
        if m.role == "labels" and m.source:
            _check_words(frame[m.source], columns[m.name], m)
        if m.role == "user" and not m.rule.whole and (lost := columns[m.name].null_count()):
            raise DataError(
                f"User column '{m.source}' has {lost:,} missing values; drop those rows."
            )
    return columns


def _check_words(raw: pl.Series, label: pl.Series, made: Made) -> None:
    lost = raw.is_not_null() & label.is_null()
    if lost.any():
        raise DataError(
            f"Label column '{made.source}' must be 0 or 1, or true or false. "
            f"Got {shown(raw.filter(lost)[0])}; repair or drop such rows, or declare `at_least`."
        )


def counted(
    frame: pl.DataFrame, made: Sequence[Made], roles: Roles, clock: RowClock | None
) -> dict[str, int]:
    """Return how often each oddity was met."""
    oddities: dict[str, int] = {}
    for m in sorted(made, key=lambda m: m.source):
        text, where = oddity(m.name, m.rule, m.source, clock) if m.source else ("", pl.lit(0))
        if text:
            oddities[text] = int(frame.select(where.sum()).item())
    missing = {c: frame[c].null_count() for c in frame.columns}
    return oddities | _missing(missing, roles.count_missing)


def _missing(missing: Mapping[str, int], wanted: Sequence[str] | None) -> dict[str, int]:
    patterns = list(missing) if wanted is None else wanted
    sums = {p: sum(n for c, n in missing.items() if fnmatchcase(c, p)) for p in patterns}
    return {f"{p.rstrip('*')} missing: null": n for p, n in sums.items() if n}
