"""Pace: how a stream keeps up, and what its events come to."""

__all__ = ["Pace"]

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from harmonrank.streaming.join.aside import REASONS
from harmonrank.streaming.join.join import Join
from harmonrank.streaming.retry import Retry

_WHY = {
    "late": ": the watermark had passed them, as when a clock goes backwards",
    "duplicate": ": they were there before, as when a source sends them twice",
    "unmatched": ": feedback of which no exposure came",
    "malformed": "; the column `detail` of the files in the state's folder `aside` says why",
}


class Pace:
    """Measures a running join.

    Args:
        join: Whose events are counted.
        lateness: Seconds that its watermark stays behind the newest event.
        retry: Knows how long the stream has waited.
    """

    def __init__(self, join: Join, lateness: float, retry: Retry) -> None:
        self._join, self._lateness, self._retry = join, lateness, retry
        self._batch_ended = time.monotonic()

    def rate(self, rows: int) -> float | None:
        """Return rows per second since the last batch, without the time that was waited."""
        now = time.monotonic()
        busy = now - self._batch_ended - self._retry.waited
        self._batch_ended, self._retry.waited = now, 0.0
        return rows / busy if busy > 0 else None

    def lag_seconds(self) -> float | None:
        """Return the time from the newest event to now; None before the first event."""
        watermark = self._join.watermark
        if watermark is None:
            return None
        return (datetime.now(UTC) - watermark).total_seconds() - self._lateness

    def aside(self) -> dict[str, int]:
        """Return how many events were set aside, by reason."""
        counts = self._join.counts
        return {reason: counts[reason] for reason in REASONS if counts.get(reason)}

    def doubts(self, before: dict[str, int], events: int) -> Iterator[str]:
        """Yield what a person should know if most events of a chunk count for nothing.

        Args:
            before: What was set aside before this chunk.
            events: Of the chunk.
        """
        for reason, now in self.aside().items():
            count = now - before.get(reason, 0)
            if 2 * count > events:
                yield f"{count:,} of {events:,} events were set aside as {reason}{_WHY[reason]}."
