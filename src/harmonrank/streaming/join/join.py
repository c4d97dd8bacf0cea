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
append-only segments per interval, each written once and linked by later commits (`segments`),
beside small bitmaps of labels and of feedback that still waits (`join_files`). Feedback that
counted is a bit and nothing else.
"""

__all__ = ["Batch", "Exposures", "Join"]

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from harmonrank.data import Schema
from harmonrank.streaming.join.arrays import (
    ACCEPTED,
    COUNTED,
    EXPOSURE,
    FEEDBACK,
    HELD,
    UNMATCHED,
    WAITING,
    ZERO,
    Limits,
)
from harmonrank.streaming.join.arrived import Arrived
from harmonrank.streaming.join.aside import AsidePart
from harmonrank.streaming.join.intervals import Batch, Exposures, rows_of
from harmonrank.streaming.join.join_files import load_state, save_state
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
        self._schema, self._windows = schema, windows
        waits = [windows.of(name) // _MICROSECOND for name in schema.names]
        longest = windows.longest(schema.names) // _MICROSECOND
        every = windows.every // _MICROSECOND
        self._limits = Limits(np.array(waits, np.int64), every, longest)
        self._lateness = windows.lateness // _MICROSECOND
        self._form = EventForm(schema)
        self._state = JoinState.new(self._form)

    @property
    def watermark(self) -> datetime | None:
        """The newest event's time, less the allowed lateness; None before the first event."""
        newest = self._state.newest
        return None if newest == NEVER else _EPOCH + (newest - self._lateness) * _MICROSECOND

    @property
    def counts(self) -> dict[str, int]:
        """How many exposures and how much feedback came, and what became of them.

        `counted` feedback set a label, `zero` said nothing; `rows` were given out with labels;
        then what was set aside, by reason.
        """
        return dict(self._state.counts)

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
        arrived = Arrived.of(events, self._schema.names, state.newest, self._lateness)
        state.aside.learn(events.schema)
        kind = arrived.arrays.kind
        state.count(
            exposures=_number(kind == EXPOSURE),
            feedback=_number((kind == FEEDBACK) | (kind == ZERO)),
            zero=_number(kind == ZERO),
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
        answers = _number(kind == FEEDBACK)
        state.shown.reserve(_number(kind == EXPOSURE), state.open_numbers)
        state.held.reserve(answers)
        shown, held = state.shown, state.held
        settled = np.empty((held.following - held.arrays.base + answers, 2), np.int64)
        count = walk(
            first,
            last,
            arrived.arrays,
            self._limits,
            shown.arrays,
            shown.following,
            held.arrays,
            held.following,
            arrived.outcome,
            settled,
        )
        outcome = arrived.outcome[first:last]
        accepted, kept = (first + np.flatnonzero(outcome == code) for code in (ACCEPTED, HELD))
        self._show(arrived, accepted)
        self._hold(arrived, kept)
        self._set_aside(arrived, first + np.flatnonzero(outcome > HELD), settled[:count])
        state.count(counted=_number(outcome == COUNTED))

    def _show(self, arrived: Arrived, rows: np.ndarray) -> None:
        numbers = self._state.shown.following + np.arange(len(rows))
        self._state.shown.following += len(rows)
        shown = arrived.events.select(*EVENT_COLUMNS[1:], *self._form.columns)
        for place, chosen in self._by_interval(arrived.arrays.time[rows]):
            self._state.interval(place).show(shown[rows[chosen]], numbers[chosen])

    def _hold(self, arrived: Arrived, rows: np.ndarray) -> None:
        numbers = self._state.held.following + np.arange(len(rows))
        self._state.held.following += len(rows)
        held = arrived.events.select(*EVENT_COLUMNS, "objective", "value")
        for place, chosen in self._by_interval(arrived.arrays.time[rows]):
            frame = held[rows[chosen]]
            facts = {"before": arrived.arrays.before[rows[chosen]], "number": numbers[chosen]}
            frame = frame.with_columns(pl.Series(name, fact) for name, fact in facts.items())
            self._state.interval(place).hold(frame, numbers[chosen])

    def _by_interval(self, times: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield intervals and which of some times are in each."""
        places = times // self._limits.every
        for place in np.unique(places).tolist():
            yield place, np.flatnonzero(places == place)

    def _set_aside(self, arrived: Arrived, rows: np.ndarray, settled: np.ndarray) -> None:
        state = self._state
        parts = [AsidePart(arrived.events[rows], arrived.outcome[rows], rows)] if len(rows) else []
        if len(settled):
            states = state.held.states(settled[:, 0])
            state.count(counted=_number(states == COUNTED))
            numbers, order = settled[states != COUNTED].T
            if len(numbers):
                held = state.held_rows(numbers, self._limits.every)
                parts.append(AsidePart(held, states[states != COUNTED], order))
        state.count(**state.aside.put(*parts))

    def _pass(self, passed: int, watermark: int) -> None:
        """Give out what is complete or closed, now that the watermark has moved."""
        due = []
        for place in self._state.intervals:
            end = (place + 1) * self._limits.every
            # Exposures that come after their interval is complete do not complete it again.
            if passed < end <= watermark:
                due.append((end, 0, place))
            if end + self._limits.longest <= watermark:
                due.append((end + self._limits.longest, 1, place))
        for _, closes, place in sorted(due):
            if closes:
                self._close(place)
            elif self._state.intervals[place].shown.rows:
                self._state.ready.append(Exposures(*self._span(place), self._rows(place)))

    def _span(self, place: int) -> tuple[datetime, datetime]:
        every = self._windows.every
        return _EPOCH + place * every, _EPOCH + (place + 1) * every

    def _rows(self, place: int, labels: np.ndarray | None = None) -> pl.DataFrame:
        return rows_of(self._schema, self._state.intervals[place].shown.frame(), labels)

    def _close(self, place: int) -> None:
        state, interval = self._state, self._state.intervals[place]
        if interval.shown.rows:
            rows = self._rows(place, state.shown.labels(interval.numbers))
            state.ready.append(Batch(*self._span(place), rows))
            state.shown.forget(interval.numbers)
            state.count(rows=rows.height)
        numbers = interval.held_numbers
        numbers = numbers[state.held.states(numbers) == WAITING]
        if len(numbers):
            held = state.held_rows(numbers, self._limits.every)
            outcomes = np.full(len(numbers), UNMATCHED, np.int8)
            state.count(**state.aside.put(AsidePart(held, outcomes, numbers)))
            state.held.close(numbers, UNMATCHED)
        del state.intervals[place]

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

    def save(self, folder: Path, *, before: Path | None = None) -> None:
        """Write all state to a folder that is not there yet.

        Args:
            folder: Where.
            before: What this join was saved to, or loaded from, the last time; what has not
                changed since is linked to it, not written again.
        """
        save_state(self._state, self._schema, self._windows, folder, before)

    @classmethod
    def load(cls, folder: Path, schema: Schema, windows: Windows) -> Self:
        """Return the join that was saved to a folder.

        Raises:
            DataError: It is damaged, or was saved with other windows or objectives.
        """
        join = cls(schema, windows)
        join._state = load_state(folder, schema, windows)
        return join


def _number(where: np.ndarray) -> int:
    return int(np.count_nonzero(where))
