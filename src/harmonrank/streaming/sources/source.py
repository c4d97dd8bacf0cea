"""Sources and sinks: where the events of a stream come from, and where a simulation sends them.

Two small interfaces, and one function each that finds the right one by its address. A source hands
out events in one order and can start again behind any position that it has told; it keeps nothing
that a crash could take away. Positions are kept by the stream, together with its state, so that
every event counts exactly once even if it is delivered twice. docs/streaming.md shows how to add
a source.
"""

__all__ = [
    "EventChunk",
    "EventSink",
    "EventSource",
    "Offset",
    "Period",
    "PeriodSource",
    "open_sink",
    "open_source",
]

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import polars as pl

from harmonrank.data import Schema
from harmonrank.support.errors import UsageError
from harmonrank.support.extras import needs_extras, plugins

ENTRY_POINTS = "harmonrank.sources"
"""The group of entry points by which an installed package adds a kind of source."""

# By name, so that one kind needs nothing of another: neither its module nor its package.
_MODULES = {
    "": "harmonrank.streaming.sources.folder",
    "redis": "harmonrank.streaming.sources.redis_streams",
    "rediss": "harmonrank.streaming.sources.redis_streams",
}

Offset = dict[str, Any]
"""A position in a source, as JSON parts; only the source itself knows what they mean."""


@dataclass(frozen=True)
class EventChunk:
    """Some events, in order.

    Attributes:
        events: The canonical frame of `harmonrank.streaming.sources.events`; it may be empty.
        offset: The position after these events.
        notes: What a person should know, a sentence each, such as a file that cannot be read.
    """

    events: pl.DataFrame
    offset: Offset
    notes: tuple[str, ...] = ()


class EventSource(Protocol):
    """Hands out events in one order."""

    def read(self, after: Offset | None, most: int) -> EventChunk | None:
        """Return the events that follow a position, about `most` of them at the most.

        Args:
            after: What an earlier chunk has told, perhaps in an earlier process; None is the
                beginning.
            most: So many events are enough; what cannot be cut may bring a few more.

        Returns:
            None if nothing is there now.

        Raises:
            SourceError: The source is away, or something in it cannot be read now: try again,
                with the same position.
        """

    def committed(self, offset: Offset) -> None:
        """Acknowledge what lies before a position: the state that came of it is safe.

        Raises:
            SourceError: The source is away. Nothing is lost: the next acknowledgement, or the
                next start, includes this one.
        """

    def waiting(self) -> int | None:
        """Return how many events (of a folder: files) wait to be read, None if nobody knows."""

    def close(self) -> None:
        """Give back connections and open files."""


class EventSink(Protocol):
    """Takes events in order."""

    def write(self, events: pl.DataFrame) -> None:
        """Send events of the canonical frame; when this returns, they are there.

        Raises:
            SourceError: The sink is away: try again.
        """

    def close(self) -> None:
        """Give back connections and open files."""


def open_source(
    address: str, schema: Schema, *, kinds: Mapping[str, str] | None = None
) -> EventSource:
    """Return the source at an address.

    Args:
        address: A folder, or `redis://host:port/db/stream?group=name`.
        schema: Which columns exposures have.
        kinds: What context columns hold: 'text', 'integer' or 'number'; those that are not named
            are settled by the first events.

    Raises:
        SourceError: It is away.
        UsageError: There is no such kind of source.
    """
    source: EventSource = _module(address).open_source(address, schema, kinds or {})
    return source


def open_sink(address: str, *, form: str = "parquet") -> EventSink:
    """Return the sink at an address; `form`, parquet or jsonl, is that of a folder's files."""
    sink: EventSink = _module(address).open_sink(address, form)
    return sink


def _module(address: str) -> Any:
    """Import the module for an address, which has its own `open_source` and `open_sink`."""
    scheme, separator, _ = address.partition("://")
    kind = scheme if separator else ""
    modules = _MODULES if kind in _MODULES else {**_MODULES, **plugins(ENTRY_POINTS)}
    if kind not in modules:
        known = [f"{name}://…" for name in modules if name]
        raise UsageError(
            f"There is no source of events of the kind '{scheme}://'; expected a folder or one of "
            f"{', '.join(known)}."
        )
    with needs_extras(f"A stream at {scheme}://…"):
        return import_module(modules[kind])


class Period(NamedTuple):
    """Which events of a source are replayed.

    Attributes:
        since: Events before this time are left out; None means the beginning.
        until: The replay ends before the first event as late as this; None means the last event.
    """

    since: datetime | None = None
    until: datetime | None = None


class PeriodSource:
    """Hands out the events of a source from one time on, and ends before another.

    It ends before the first event that is as late as `until`: so the state that comes of it is the
    one that the stream had when its newest event was older than that. Where a source cannot be cut
    there, it ends a little earlier. The source is not told what is committed, as the stream whose
    source it is has not committed it.

    Args:
        source: Whose events.
        period: Which of them.
    """

    def __init__(self, source: EventSource, period: Period) -> None:
        self._source, (self._since, self._until) = source, period

    def read(self, after: Offset | None, most: int) -> EventChunk | None:
        """Return the events that follow a position; None at the end of the period."""
        chunk = self._source.read(after, most)
        while chunk is not None and (left := self._before_end(chunk.events)) < chunk.events.height:
            # The position behind the last event of the period is known to the source alone.
            chunk = self._source.read(after, left) if left else None
            if chunk is not None and chunk.events.height > left:
                return None
        if chunk is None or self._since is None:
            return chunk
        early = (pl.col("time") < self._since).fill_null(False)
        return replace(chunk, events=chunk.events.filter(~early))

    def _before_end(self, events: pl.DataFrame) -> int:
        """Return how many events come before the first one that is too late."""
        if self._until is None:
            return events.height
        # A malformed event is none that the watermark follows, whatever its time.
        sound = events["fault"].is_null() if "fault" in events.columns else True
        late = ((events["time"] >= self._until).fill_null(False) & sound).arg_true()
        return int(late[0]) if len(late) else events.height

    def committed(self, offset: Offset) -> None:
        """Say nothing to the source."""

    def waiting(self) -> int | None:
        """Return what the source says."""
        return self._source.waiting()

    def close(self) -> None:
        """Close the source."""
        self._source.close()
