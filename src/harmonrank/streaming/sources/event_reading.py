"""Event reading: raw rows become the canonical frame, with what is wrong with each of them."""

__all__ = ["AHEAD", "read_frame", "read_lines", "settled_by", "to_lines"]

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import inf, isfinite
from typing import Any

import msgspec
import polars as pl

from harmonrank.data.scales import bounds_of
from harmonrank.data.values import LAST_PLACE
from harmonrank.streaming.sources.events import (
    TYPES,
    Converted,
    EventForm,
    converted,
    nulls,
    series_of,
)

AHEAD = timedelta(hours=1)
"""How far an event may be ahead of the clock; else one broken clock would close every window."""

_Read = Callable[[str, str], Converted]
_Check = tuple[pl.Expr, str]
_TURNED = 256
_NO_OBJECT = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_BAD = "\0bad "
"""Begins the name of the column that tells where the values of another are of no use."""


def read_frame(form: EventForm, raw: pl.DataFrame, *, now: datetime | None = None) -> pl.DataFrame:
    """Return the rows of a table as events.

    Args:
        form: What events look like.
        raw: Columns in any order; one that is missing is null.
        now: What the clock shows; the clock of this machine if left out.
    """

    def read(name: str, kind: str) -> Converted:
        if name in raw.columns:
            return converted(raw[name], kind)
        return Converted(nulls(TYPES[kind], raw.height))

    def spell(row: int) -> str:
        return json.dumps(raw.row(row, named=True), default=str)

    return _events(form, read, spell, now)


def read_lines(
    form: EventForm, lines: Sequence[bytes], *, now: datetime | None = None
) -> pl.DataFrame:
    """Return JSON lines, an object each, as events."""
    columns, broken = _decoded(form, lines)

    def read(name: str, kind: str) -> Converted:
        series = series_of(columns[name], kind)
        if name == "event" and any(broken):
            return series._replace(bad=pl.Series(broken))
        return series

    return _events(form, read, lambda row: lines[row].decode(errors="replace"), now)


def settled_by(form: EventForm, lines: Sequence[bytes], *, every: bool = False) -> EventForm:
    """Return the form with what JSON lines tell of its context columns.

    Args:
        form: What is known so far.
        lines: The next ones.
        every: Whether all values have a say, as where these lines are the same ones however a
            stream is cut into chunks. Else the first value of each column decides.
    """
    if not form.unsettled():
        return form
    columns = {}
    for name in form.unsettled():
        known = [value for value in _decoded(form, lines)[0][name] if value is not None]
        columns[name] = pl.Series(known if every else known[:1], strict=False)
    return form.settled(columns)


def _decoded(form: EventForm, lines: Sequence[bytes]) -> tuple[dict[str, list[Any]], list[bool]]:
    """Return the values of each column, and which lines are no objects."""
    decode = msgspec.json.Decoder(_struct(tuple(form.types))).decode
    broken = [False] * len(lines)
    try:
        rows = [decode(line) for line in lines]
    except _NO_OBJECT:
        rows = []
        for number, line in enumerate(lines):
            try:
                rows.append(decode(line))
            except _NO_OBJECT:
                rows.append(decode(b"{}"))
                broken[number] = True
    columns: dict[str, list[Any]] = {name: [] for name in form.types}
    # A few rows at a time stay in the cache while they become columns.
    for first in range(0, len(rows), _TURNED):
        part = map(msgspec.structs.astuple, rows[first : first + _TURNED])
        for values, more in zip(columns.values(), zip(*part, strict=True), strict=True):
            values.extend(more)
    return columns, broken


@lru_cache(maxsize=64)
def _struct(columns: tuple[str, ...]) -> type[msgspec.Struct]:
    """Return a type with these fields, any of which may be missing; others are passed over."""
    fields = {f"f{number}": name for number, name in enumerate(columns)}
    return msgspec.defstruct(
        "Event", [(name, Any, None) for name in fields], rename=fields, gc=False
    )


def to_lines(events: pl.DataFrame) -> list[bytes]:
    """Return events as JSON lines, without what does not apply."""
    plain = events.drop("fault", "raw", strict=False)
    encode = msgspec.json.Encoder().encode
    return [
        encode({name: value for name, value in row.items() if value is not None})
        for row in plain.iter_rows(named=True)
    ]


def _events(
    form: EventForm, read: _Read, spell: Callable[[int], str], now: datetime | None
) -> pl.DataFrame:
    """Return the canonical frame.

    Args:
        form: What events look like.
        read: Returns a column as its kind, and where its values are of no use.
        spell: Writes out a row as it came.
        now: What the clock shows.
    """
    columns, bad = [], []
    for name, kind in form.kinds_of_all.items():
        values, wrong = read(name, kind)
        columns.append(values.alias(name))
        bad.append(
            (nulls(pl.Boolean(), len(values)) if wrong is None else wrong).alias(_BAD + name)
        )
    silent = (pl.col("event") == "feedback") & pl.col("value").is_null()
    frame = pl.DataFrame([*columns, *bad])
    frame = frame.with_columns(pl.when(silent).then(1.0).otherwise("value").alias("value"))
    checks = [*_checks(form, (now or datetime.now(UTC)) + AHEAD)]
    failed = frame.select(where.any().alias(why) for where, why in checks).row(0, named=True)
    faults = [pl.when(where).then(pl.lit(why)) for where, why in checks if failed[why]]
    none = pl.lit(None, pl.String)
    frame = frame.with_columns(fault=pl.coalesce(*faults, none), raw=none)
    rows = frame["fault"].is_not_null().arg_true()
    if len(rows):
        frame = frame.with_columns(raw=frame["raw"].scatter(rows, [*map(spell, rows.to_list())]))
    return frame.select(*form.types)


def _checks(form: EventForm, latest: datetime) -> Iterator[_Check]:
    """Yield where rows are malformed, and why; the first that a row fails is told."""
    event, time, schema = pl.col("event"), pl.col("time"), form.schema
    shown, given = (event == "exposure").fill_null(False), (event == "feedback").fill_null(False)
    yield pl.col(f"{_BAD}event") & event.is_null(), "the line is not a JSON object"
    yield ~(shown | given), "`event` must be exposure or feedback"
    for name in ("request", "item", "user"):
        yield pl.col(_BAD + name), f"`{name}` must be text or a whole number"
        if name != "user":
            yield pl.col(name).is_null(), f"there is no `{name}`"
    yield pl.col(f"{_BAD}time"), "`time` must be a time since 1970"
    yield time.is_null(), "there is no `time`"
    yield time > latest, "`time` is more than an hour ahead of the clock"
    yield pl.col(f"{_BAD}position"), "`position` must be a whole number"
    if schema.position is not None:
        # Each exposure needs one where the schema wants feedback corrected for it.
        position = pl.col("position")
        yield shown & position.is_null(), "there is no `position`"
        outside = (position < 0) | (position > LAST_PLACE)
        yield shown & outside, f"`position` must lie in [0, {LAST_PLACE}]"
    for name, kind in form.columns.items():
        if name in form.numbers:
            yield from ((shown & where, why) for where, why in _number_checks(form, name))
        else:
            said = f"context '{name}' must be {kind}, as it was at first"
            yield shown & pl.col(_BAD + name), said
    unknown = ~pl.col("objective").is_in(list(schema.names)).fill_null(False)
    yield given & unknown, "`objective` must be one of the schema's"
    wrong = pl.col(f"{_BAD}value") | ~pl.col("value").is_in([0.0, 1.0])
    yield given & wrong, "`value` must be 0 or 1"


def _number_checks(form: EventForm, name: str) -> Iterator[_Check]:
    schema, number = form.schema, pl.col(name)
    low, high, needed = 0.0, 1.0, True
    if name in schema.score_columns:
        low, high = bounds_of(schema.scales[schema.score_columns.index(name)])
        needed = schema.missing == "error"
    yield pl.col(_BAD + name), f"'{name}' must be a number"
    if needed:
        yield number.is_null(), f"there is no '{name}'"
    rule = f"lie in [{low:g}, {high:g}]" if isfinite(high) else "be finite"
    outside = (number < low) | (number > high) | (number.abs() == inf)
    yield outside, f"'{name}' must {rule}"
