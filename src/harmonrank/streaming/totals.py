"""Totals: what is known of a running stream, gathered from its events."""

__all__ = ["StreamTotals"]

from collections import Counter
from datetime import datetime
from functools import singledispatchmethod
from typing import Any

from harmonrank.streaming.loop_events import (
    BatchLearned,
    EventsRead,
    IntervalCompleted,
    Publication,
    QualityFacts,
    RetryPlanned,
    ScoreMove,
    StateCommitted,
    StreamStarted,
)


class StreamTotals:
    """The newest of everything; a terminal and the metrics show it.

    Attributes:
        retries: How often each of source, registry and state was tried again.
        trouble: What is being tried again; None if all goes well.
    """

    def __init__(self) -> None:
        self.started: StreamStarted | None = None
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

    @singledispatchmethod
    def event(self, event: Any) -> None:
        """Take in an event; most others say nothing that is counted."""

    @event.register
    def _started(self, event: StreamStarted) -> None:
        self.started, self.commit = event, event.commit
        self.events, self.learned_rows = event.events, event.learned_rows
        self.published, self.refused = event.published, event.refused

    @event.register
    def _read(self, event: EventsRead) -> None:
        self.events, self.waiting, self.aside = event.total, event.waiting, event.aside
        self.watermark, self.lag_seconds = event.watermark, event.lag_seconds
        self.trouble = None

    @event.register
    def _completed(self, event: IntervalCompleted) -> None:
        self.moves, self.replaced = event.moves, event.replaced
        self._count(event.version)

    @event.register
    def _learned(self, event: BatchLearned) -> None:
        self.learned_rows, self.guard_rows = event.learned_rows, event.guard_rows
        self.window, self.held = event.window, event.held
        self.rows_per_second = event.rows_per_second
        self.batches += 1
        self._count(event.version)

    def _count(self, made: Publication | None) -> None:
        self.trouble = None
        if made is not None:
            self.version = made
            self.published += made.refused is None
            self.refused += made.refused is not None

    @event.register
    def _committed(self, event: StateCommitted) -> None:
        self.commit, self.trouble = event.commit, None

    @event.register
    def _retry(self, event: RetryPlanned) -> None:
        self.retries[event.what] += 1
        self.trouble = event
