"""Totals: what is known of a running stream, gathered from its events."""

__all__ = ["StreamTotals"]

from collections import Counter
from datetime import datetime

from harmonrank.streaming.loop_events import (
    BatchLearned,
    EventsRead,
    LoopEvent,
    Publication,
    QualityFacts,
    RetryPlanned,
    ScoreMove,
    StreamStarted,
)


class StreamTotals:
    """The newest of everything; a terminal and the metrics show it.

    What events call by the name of an attribute is kept under that name.

    Attributes:
        retries: How often each of source, registry and state was tried again.
        trouble: What is being tried again; None if all goes well.
    """

    def __init__(self) -> None:
        self.events = self.learned_rows = self.batches = 0
        self.published = self.refused = self.commit = 0
        self.waiting: int | None = None
        self.watermark: datetime | None = None
        self.lag_seconds: float | None = None
        self.rows_per_second: float | None = None
        self.guard_rows = 0
        self.aside: dict[str, int] = {}
        self.window: QualityFacts | None = None
        self.moves: dict[str, ScoreMove] = {}
        self.replaced: list[str] = []
        self.version: Publication | None = None
        self.held: str | None = None
        self.retries: Counter[str] = Counter()
        self.trouble: RetryPlanned | None = None

    def event(self, event: LoopEvent) -> None:
        """Take in an event."""
        if isinstance(event, RetryPlanned):
            self.retries[event.what] += 1
            self.trouble = event
            return
        if not isinstance(event, StreamStarted):
            self.trouble = None
        last = self.version
        for name in event.__struct_fields__:
            if name in vars(self):
                setattr(self, name, getattr(event, name))
        self.batches += isinstance(event, BatchLearned)
        if isinstance(event, EventsRead):
            self.events = event.total  # its `events` are those of a chunk
        made, self.version = getattr(event, "version", None), self.version or last
        if made is not None:
            self.published += made.refused is None
            self.refused += made.refused is not None
