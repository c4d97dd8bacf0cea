"""Redis entries: the events that entries of a stream hold."""

__all__ = ["EntryRows"]

import json
from collections.abc import Mapping
from typing import Any

from harmonrank.streaming.event_reading import decode_lines
from harmonrank.streaming.events import EVENT_COLUMNS, EventForm

_EVENTS = b"events"
_TEXT = frozenset(EVENT_COLUMNS) - {"time", "position"} | {"objective"}


class EntryRows:
    """The events of entries as rows of JSON values.

    Attributes:
        broken: Why some rows are no events.
    """

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._fields: dict[int, dict[str, str]] = {}
        self.broken: dict[int, str] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._rows)

    def add(self, fields: Mapping[bytes, bytes]) -> None:
        """Add the events of an entry."""
        if _EVENTS not in fields:
            self._fields[self.count] = {_text(k): _text(v) for k, v in fields.items()}
            self._rows.append({})
            return
        lines = [line for line in fields[_EVENTS].split(b"\n") if line and not line.isspace()]
        found, why = decode_lines(lines)
        for place, reason in why.items():
            found[place] = {"line": _text(lines[place])}
            self.broken[self.count + place] = reason
        self._rows += found

    def rows(self, form: EventForm) -> list[dict[str, Any]]:
        """Return them; fields, which Redis keeps as text, as what the form says they are."""
        for row, fields in self._fields.items():
            self._rows[row] = {name: _value(form, name, text) for name, text in fields.items()}
        return self._rows


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
