"""Redis entries: the events that entries of a stream hold.

An entry holds several events as JSON lines in a field `events`, or one as its fields.
"""

__all__ = ["entries_of", "lines_of"]

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from harmonrank.streaming.sources.event_reading import to_lines
from harmonrank.streaming.sources.events import EVENT_COLUMNS, EventForm

_EVENTS = b"events"
_TEXT = frozenset(EVENT_COLUMNS) - {"time", "position"} | {"objective"}


def entries_of(events: pl.DataFrame, batch: int) -> list[dict[str, Any]]:
    """Return events as entries of so many events each."""
    if batch > 1:
        lines = to_lines(events)
        starts = range(0, len(lines), batch)
        return [{"events": b"\n".join(lines[first : first + batch])} for first in starts]
    plain = events.drop("fault", "raw", strict=False)
    plain = plain.with_columns(plain["time"].dt.to_string("iso:strict"))
    return [
        {name: str(value) for name, value in row.items() if value is not None}
        for row in plain.iter_rows(named=True)
    ]


def lines_of(fields: Mapping[bytes, bytes], form: EventForm) -> list[bytes]:
    """Return the events of an entry as JSON lines; a single one by what the form says of it."""
    if _EVENTS in fields:
        return [line for line in fields[_EVENTS].split(b"\n") if line.strip()]
    row = {_text(name): _text(value) for name, value in fields.items()}
    return [json.dumps({name: _value(form, name, text) for name, text in row.items()}).encode()]


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _value(form: EventForm, name: str, text: str) -> Any:
    """Return the value of a field, which Redis keeps as text."""
    if not text:
        return None
    if name in _TEXT or form.kinds.get(name) == "text":
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if type(value) in (int, float) else text
