"""Event reading: raw rows become the canonical frame, with what is wrong with each of them."""

__all__ = ["AHEAD", "read_frame", "read_lines", "settled_by", "to_lines"]

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec
import numpy as np
import polars as pl

from harmonrank.data.reading.checking import LAST_PLACE
from harmonrank.data.scales import bounds_of
from harmonrank.streaming.sources.event_columns import TYPES, converted, series_of
from harmonrank.streaming.sources.events import EventForm

AHEAD = timedelta(hours=1)
"""How far an event may be ahead of the clock; else one broken clock would close every window."""

_Read = Callable[[str, str], tuple[pl.Series, pl.Series | None]]
_Spell = Callable[[np.ndarray], list[str]]
_TURNED = 256
_NO_OBJECT = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_frame(form: EventForm, raw: pl.DataFrame, *, now: datetime | None = None) -> pl.DataFrame:
    """Return the rows of a table as events.

    Args:
        form: What events look like.
        raw: Columns in any order; one that is missing is null.
        now: What the clock shows; the clock of this machine if left out.
    """

    def read(name: str, kind: str) -> tuple[pl.Series, pl.Series | None]:
        if name in raw.columns:
            return converted(raw[name], kind)
        return pl.Series("", [None], TYPES[kind]).new_from_index(0, raw.height), None

    def spell(rows: np.ndarray) -> list[str]:
        return [json.dumps(raw.row(row, named=True), default=str) for row in rows.tolist()]

    return _Reading(form, raw.height, read).events(now, spell)


def read_lines(
    form: EventForm, lines: Sequence[bytes], *, now: datetime | None = None
) -> pl.DataFrame:
    """Return JSON lines, an object each, as events."""
    columns, broken = _decoded(form, lines)

    def read(name: str, kind: str) -> tuple[pl.Series, pl.Series | None]:
        return series_of(columns[name], kind)

    def spell(places: np.ndarray) -> list[str]:
        return [lines[place].decode(errors="replace") for place in places.tolist()]

    reading = _Reading(form, len(lines), read)
    reading.note(broken)
    return reading.events(now, spell)


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
    values = _decoded(form, lines)[0]
    if not every:
        values = {name: [_first(values[name])] for name in form.unsettled()}
    return form.settled(values)


def _first(values: Sequence[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _decoded(
    form: EventForm, lines: Sequence[bytes]
) -> tuple[dict[str, list[Any]], dict[int, str]]:
    """Return the values of each column, and why some lines are no objects."""
    decode, broken = msgspec.json.Decoder(_struct(tuple(form.types))).decode, dict[int, str]()
    try:
        rows = [decode(line) for line in lines]
    except _NO_OBJECT:
        rows = []
        for place, line in enumerate(lines):
            try:
                rows.append(decode(line))
            except _NO_OBJECT:
                rows.append(decode(b"{}"))
                broken[place] = "the line is not a JSON object"
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
    fields = {f"f{place}": name for place, name in enumerate(columns)}
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


class _Reading:
    """Reads the columns of some rows, and notes the first thing that is wrong with each row."""

    def __init__(self, form: EventForm, rows: int, read: _Read) -> None:
        self._form, self._rows, self._read = form, rows, read
        self._every = np.ones(rows, dtype=bool)
        self._faults: dict[int, str] = {}

    def note(self, faults: Mapping[int, str]) -> None:
        """Note faults of which the caller knows, row by row."""
        self._faults |= faults

    def events(self, now: datetime | None, spell: _Spell) -> pl.DataFrame:
        """Return the canonical frame; `spell` writes out rows as they came."""
        made = {"event": self._read("event", "id")[0]}
        shown, answered = (_mask(made["event"] == kind) for kind in ("exposure", "feedback"))
        self._mark(~(shown | answered), self._every, "`event` must be exposure or feedback")
        made |= self._common(now or datetime.now(UTC))
        self._check_place(made["position"], shown)
        for name, kind in self._form.columns.items():
            made[name], wrong = self._read(name, kind)
            if name in self._form.numbers:
                self._check_number(name, made[name], wrong, shown)
            else:
                self._mark(wrong, shown, f"context '{name}' must be {kind}, as it was at first")
        made |= self._feedback(answered)
        made["fault"], made["raw"] = self._notes(spell)
        return pl.DataFrame([made[name].alias(name) for name in self._form.types])

    def _common(self, now: datetime) -> dict[str, pl.Series]:
        made = {}
        for name in ("request", "item", "user"):
            made[name], wrong = self._read(name, "id")
            self._mark(wrong, self._every, f"`{name}` must be text or a whole number")
            if name != "user" and made[name].null_count():
                self._mark(made[name].is_null(), self._every, f"there is no `{name}`")
        made["time"], wrong = self._read("time", "time")
        self._mark(wrong, self._every, "`time` must be a time since 1970")
        if made["time"].null_count():
            self._mark(made["time"].is_null(), self._every, "there is no `time`")
        newest = made["time"].max()
        if isinstance(newest, datetime) and newest > now + AHEAD:
            ahead = made["time"] > now + AHEAD
            self._mark(ahead, self._every, "`time` is more than an hour ahead of the clock")
        made["position"], wrong = self._read("position", "integer")
        self._mark(wrong, self._every, "`position` must be a whole number")
        return made

    def _check_place(self, places: pl.Series, shown: np.ndarray) -> None:
        """Demand a place of each exposure where the schema wants feedback corrected for it."""
        if self._form.schema.position is None:
            return
        self._mark(places.is_null(), shown, "there is no `position`")
        outside = (places < 0) | (places > LAST_PLACE)
        self._mark(outside, shown, f"`position` must lie in [0, {LAST_PLACE}]")

    def _check_number(
        self, name: str, found: pl.Series, wrong: pl.Series | None, shown: np.ndarray
    ) -> None:
        schema, needed = self._form.schema, True
        low, high = (0.0, np.inf) if name == schema.sample_weight else (0.0, 1.0)
        if name in schema.score_columns:
            low, high = bounds_of(schema.scales[schema.score_columns.index(name)])
            needed = schema.missing == "error"
        self._mark(wrong, shown, f"'{name}' must be a number")
        if needed:
            self._mark(found.is_null(), shown, f"there is no '{name}'")
        ends = [end for end in (found.min(), found.max()) if isinstance(end, float)]
        if all(low <= end <= high and isfinite(end) for end in ends):
            return
        rule = f"lie in [{low:g}, {high:g}]" if isfinite(high) else "be finite"
        outside = (found < low) | (found > high) | found.is_infinite()
        self._mark(outside, shown, f"'{name}' must {rule}")

    def _feedback(self, answered: np.ndarray) -> dict[str, pl.Series]:
        objective = self._read("objective", "id")[0]
        known = objective.cast(pl.Enum(list(self._form.schema.names)), strict=False)
        self._mark(known.is_null(), answered, "`objective` must be one of the schema's")
        value, wrong = self._read("value", "number")
        self._mark(wrong, answered, "`value` must be 0 or 1")
        silent = value.is_null().to_numpy() & answered
        value = value.set(pl.Series(silent), 1.0) if silent.any() else value
        self._mark((value != 0) & (value != 1), answered, "`value` must be 0 or 1")
        return {"objective": objective, "value": value}

    def _mark(self, wrong: pl.Series | np.ndarray | None, among: np.ndarray, why: str) -> None:
        """Note a fault where something is wrong, among some of the rows."""
        if wrong is None:
            return
        rows = (wrong if isinstance(wrong, np.ndarray) else _mask(wrong)) & among
        for row in np.flatnonzero(rows).tolist():
            self._faults.setdefault(row, why)

    def _notes(self, spell: _Spell) -> tuple[pl.Series, pl.Series]:
        none = pl.Series("", [None], pl.String).new_from_index(0, self._rows)
        if not self._faults:
            return none, none
        rows = np.array(sorted(self._faults))
        why = [self._faults[row] for row in rows.tolist()]
        return none.clone().scatter(rows, why), none.clone().scatter(rows, spell(rows))


def _mask(values: pl.Series) -> np.ndarray:
    """Return truth values as an array; null is false."""
    held: np.ndarray = (values.fill_null(False) if values.null_count() else values).to_numpy()
    return held
