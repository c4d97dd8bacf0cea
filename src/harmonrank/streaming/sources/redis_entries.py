"""Redis entries: the events that entries of a stream hold."""

__all__ = ["EntryLines"]

import json
from collections.abc import Mapping
from typing import Any

from harmonrank.streaming.sources.events import EVENT_COLUMNS, EventForm

_EVENTS = b"events"
_TEXT = frozenset(EVENT_COLUMNS) - {"time", "position"} | {"objective"}


class EntryLines:
    """The events of entries as JSON lines."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._fields: dict[int, dict[str, str]] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._lines)

    def add(self, fields: Mapping[bytes, bytes]) -> None:
        """Add the events of an entry."""
        if _EVENTS in fields:
            self._lines += [line for line in fields[_EVENTS].split(b"\n") if line.strip()]
            return
        self._fields[self.count] = {_text(k): _text(v) for k, v in fields.items()}
        self._lines.append(b"")

    def lines(self, form: EventForm) -> list[bytes]:
        """Return them; fields, which Redis keeps as text, as what the form says they are."""
        for place, fields in self._fields.items():
            row = {name: _value(form, name, text) for name, text in fields.items()}
            self._lines[place] = json.dumps(row).encode()
        return self._lines


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
