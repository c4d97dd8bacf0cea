"""Join: from exposures and feedback to labelled rows, as the watermark passes.

All of it is a function of the sequence of events, never of how it was cut into chunks:

- The watermark is the newest time so far, less the allowed lateness. It never falls: a clock that
  goes backwards only makes events late.
- An exposure belongs to the interval of its time. The interval is complete when the watermark
  reaches its end, and closed when it reaches the end and the longest waiting window: then its
  labelled rows are given out, in order of arrival. An exposure whose interval has closed is late; a
  second one of the same request and item is a duplicate as long as the first one is open.
- Feedback counts if it was given within its window after the exposure, and arrived before the
  watermark reached the end of that window; else it is late. Of several that count the first does,
  and the others are duplicates. Feedback without an open exposure is held until one comes; it is
  late if the interval of its own time has closed before, and unmatched when that closes.

What is late, a duplicate, unmatched or malformed is counted, and set aside with a reason, once.
Feedback of value 0 says nothing, and is counted only.

State is bounded by the windows: exposures and held feedback of open intervals. On disk they are
append-only segments per interval, each written once and linked by later commits,
beside bits of labels and of feedback that still waits (`join_saved`). Feedback that
counted is a bit and nothing else.
"""

__all__ = ["Batch", "Exposures", "Join"]

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Self

import numpy as np
import polars as pl

from harmonrank.data import Schema
from harmonrank.streaming.join import arrays as code
from harmonrank.streaming.join.arrays import Limits
from harmonrank.streaming.join.arrived import Arrived
from harmonrank.streaming.join.aside import REASONS, AsidePart
from harmonrank.streaming.join.intervals import Batch, Exposures, OpenInterval, rows_of
from harmonrank.streaming.join.join_saved import (
    JoinRecord,
    Read,
    join_frames,
    join_record,
    restored_join,
)
from harmonrank.streaming.join.join_state import NEVER, JoinState
from harmonrank.streaming.join.kernels import walk
from harmonrank.streaming.join.windows import Windows
from harmonrank.streaming.sources.events import EVENT_COLUMNS, EventForm

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Join:
    """Takes events, in any chunks, and gives complete and closed intervals back, each once.

    Args:
        schema: Which columns exposures have.
        windows: How long things wait.
    """

    def __init__(self, schema: Schema, windows: Windows) -> None:
        self._schema = schema
        waits = [_micros(windows.of(name)) for name in schema.names]
        longest = _micros(windows.longest(schema.names))
        every, lateness = _micros(windows.every), _micros(windows.lateness)
        self._limits = Limits(np.array(waits, np.int64), every, longest, lateness)
        self._form = EventForm(schema)
        self._state = JoinState.new(self._form)

    @property
    def newest(self) -> datetime | None:
        """The newest event's time; None before the first event."""
        newest = self._state.newest
        return None if newest == NEVER else _EPOCH + newest * _MICROSECOND

    @property
    def watermark(self) -> datetime | None:
        """The newest event's time, less the allowed lateness."""
        return None if self.newest is None else self.newest - self._limits.lateness * _MICROSECOND

    @property
    def counts(self) -> dict[str, int]:
        """How many exposures and how much feedback came, and what became of them.

        `counted` feedback set a label, `zero` said nothing; `rows` were given out with labels;
        then what was set aside, by reason.
        """
        return dict(self._state.counts)

    @property
    def set_aside(self) -> dict[str, int]:
        """How many events were set aside, by reason."""
        return {reason: n for reason in REASONS if (n := self._state.counts[reason])}

    @property
    def waiting(self) -> dict[str, int]:
        """How many exposures are open, and how much feedback is held, now."""
        shown = sum(interval.shown.rows for interval in self._state.intervals.values())
        return {"exposures": shown, "feedback": len(self._state.held.waiting)}

    def add(self, events: pl.DataFrame) -> None:
        """Take events of the canonical frame, the next ones in order."""
        if not events.height:
            return
        state = self._state
        arrived = Arrived.of(events, self._schema.names, state.newest, self._limits)
        kind = arrived.arrays.kind
        state.count(
            exposures=_number(kind == code.EXPOSURE),
            feedback=_number((kind == code.FEEDBACK) | (kind == code.ZERO)),
            zero=_number(kind == code.ZERO),
        )
        for first, last in self._walks(arrived.watermark):
            self._walk(arrived, first, last)
            self._pass(int(arrived.watermark[first]), int(arrived.watermark[last]))
        state.newest = arrived.newest

    def _walks(self, watermark: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield pieces of a chunk: each ends where an interval may be complete or closed."""
        every, longest = self._limits.every, self._limits.longest
        ended = np.diff(watermark // every) + np.diff((watermark - longest) // every)
        cuts = np.flatnonzero(ended) + 1
        bounds = [0, *cuts.tolist(), len(watermark) - 1]
        yield from ((a, b) for a, b in pairwise(bounds) if a < b)

    def _walk(self, arrived: Arrived, first: int, last: int) -> None:
        """Take events between which no interval closes."""
        state, kind = self._state, arrived.arrays.kind[first:last]
        answers = _number(kind == code.FEEDBACK)
        state.shown.reserve(_number(kind == code.EXPOSURE), state.open_numbers)
        state.held.reserve(answers, lambda: state.held.waiting)
        shown, held = state.shown, state.held
        settled = np.empty((held.following - held.arrays.base + answers, 2), np.int64)
        count = walk(
            first,
            last,
            arrived.arrays,
            self._limits.waits,
            shown.arrays,
            shown.following,
            held.arrays,
            held.following,
            arrived.outcome,
            settled,
        )
        outcome = arrived.outcome[first:last]
        self._show(arrived, first + np.flatnonzero(outcome == code.ACCEPTED))
        self._hold(arrived, first + np.flatnonzero(outcome == code.HELD))
        self._set_aside(arrived, first + np.flatnonzero(outcome > code.HELD), settled[:count])
        state.count(counted=_number(outcome == code.COUNTED))

    def _show(self, arrived: Arrived, rows: np.ndarray) -> None:
        numbers = self._state.shown.numbered(len(rows))
        shown = arrived.events.select(*EVENT_COLUMNS[1:], *self._form.columns)
        for interval, chosen in self._by_interval(arrived.arrays.time[rows]):
            interval.show(shown[rows[chosen]], numbers[chosen])

    def _hold(self, arrived: Arrived, rows: np.ndarray) -> None:
        facts = {
            "before": arrived.arrays.before[rows],
            "number": self._state.held.numbered(len(rows)),
        }
        held = arrived.events.select(*EVENT_COLUMNS, "objective", "value")[rows]
        held = held.with_columns(pl.Series(name, fact) for name, fact in facts.items())
        for interval, chosen in self._by_interval(arrived.arrays.time[rows]):
            interval.held.add(held[chosen])

    def _by_interval(self, times: np.ndarray) -> Iterator[tuple[OpenInterval, np.ndarray]]:
        """Yield intervals and which of some times are in each."""
        numbers = times // self._limits.every
        for number in np.unique(numbers).tolist():
            yield self._state.interval(number), np.flatnonzero(numbers == number)

    def _set_aside(self, arrived: Arrived, rows: np.ndarray, settled: np.ndarray) -> None:
        state = self._state
        parts = [AsidePart(arrived.events[rows], arrived.outcome[rows], rows)] if len(rows) else []
        if len(settled):
            states = state.held.states(settled[:, 0])
            state.count(counted=_number(states == code.COUNTED))
            numbers, order = settled[states != code.COUNTED].T
            if len(numbers):
                held = state.held_rows(numbers)
                parts.append(AsidePart(held, states[states != code.COUNTED], order))
        state.count(**state.aside.put(*parts))

    def _pass(self, passed: int, watermark: int) -> None:
        """Give out what is complete or closed, now that the watermark has moved."""
        due = []
        for number in self._state.intervals:
            end = (number + 1) * self._limits.every
            # Exposures that come after their interval is complete do not complete it again.
            if passed < end <= watermark:
                due.append((end, 0, number))
            if end + self._limits.longest <= watermark:
                due.append((end + self._limits.longest, 1, number))
        for _, closes, number in sorted(due):
            if closes:
                self._close(number)
            elif self._state.intervals[number].shown.rows:
                self._state.ready.append(Exposures(*self._span(number), self._rows(number)))

    def _span(self, number: int) -> tuple[datetime, datetime]:
        every = self._limits.every * _MICROSECOND
        return _EPOCH + number * every, _EPOCH + (number + 1) * every

    def _rows(self, number: int, labels: np.ndarray | None = None) -> pl.DataFrame:
        return rows_of(self._schema, self._state.intervals[number].shown.frame(), labels)

    def _close(self, number: int) -> None:
        state, interval = self._state, self._state.intervals[number]
        if interval.shown.rows:
            rows = self._rows(number, state.shown.labels(interval.numbers))
            state.ready.append(Batch(*self._span(number), rows))
            state.count(rows=rows.height)
        numbers = interval.held_numbers
        numbers = numbers[state.held.states(numbers) == code.WAITING]
        if len(numbers):
            held = state.held_rows(numbers)
            outcomes = np.full(len(numbers), code.UNMATCHED, np.int8)
            state.count(**state.aside.put(AsidePart(held, outcomes, numbers)))
            state.held.close(numbers, code.UNMATCHED)
        del state.intervals[number]

    def ready(self) -> list[Exposures | Batch]:
        """Return what has become complete or closed, each once, in the order of the watermark.

        An interval that is complete comes before one that is closed at the same moment. The order
        does not depend on chunks, so what is done in this order does not either.
        """
        found, self._state.ready = self._state.ready, []
        return found

    def take_aside(self) -> pl.DataFrame:
        """Return what was set aside since the last call: its `reason`, a `detail`, the event."""
        return self._state.aside.take()

    def record(self) -> JoinRecord:
        """Return what `frames` do not tell of its state."""
        return join_record(self._state)

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return the frames of its state; those that have not changed are the same objects."""
        return join_frames(self._state)

    @classmethod
    def restored(cls, record: JoinRecord, schema: Schema, windows: Windows, read: Read) -> Self:
        """Return the join of a record and of frames, which are read by name."""
        join = cls(schema, windows)
        join._state = restored_join(record, schema, join._limits.every, read)
        return join


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


def _number(where: np.ndarray) -> int:
    return int(np.count_nonzero(where))
