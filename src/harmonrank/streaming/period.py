"""Period: the part of a source's events that lies between two times."""

__all__ = ["Period", "PeriodSource"]

from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import polars as pl

from harmonrank.streaming.sources.source import EventChunk, EventSource, Offset


class Period(NamedTuple):
    """What of a source's events is replayed.

    Attributes:
        since: Events before it are left out; None is the beginning.
        until: It ends before the first event as late as this; None is the end of what is there.
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
