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
append-only segments per interval, each written once and linked by later commits, beside the labels
of open exposures and the feedback that still waits (`intervals`). Feedback that counted is a label
and nothing else.
"""

__all__ = ["Batch", "Exposures", "Join"]

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Self

import numpy as np
import polars as pl

from harmonrank.data import Schema
from harmonrank.streaming.config import Windows
from harmonrank.streaming.join import intervals
from harmonrank.streaming.join import kernels as code
from harmonrank.streaming.join.aside import REASONS, Aside, AsidePart
from harmonrank.streaming.join.intervals import Batch, Exposures, OpenInterval, Read
from harmonrank.streaming.join.kernels import Limits, walk
from harmonrank.streaming.join.tables import Arrived, HeldTable, ShownTable
from harmonrank.streaming.sources.events import EVENT_COLUMNS, EventForm

_COUNTS = ("exposures", "feedback", "counted", "zero", "rows", *REASONS)
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
        self._shown, self._held = ShownTable(len(schema.names)), HeldTable()
        self._intervals: dict[int, OpenInterval] = {}  # by their number since 1970
        self._held_rows: list[pl.DataFrame] = []
        self._aside = Aside(self._form)
        self._ready: list[Exposures] = []
        self._counts = Counter(dict.fromkeys(_COUNTS, 0))
        self._newest = code.NEVER

    @property
    def newest(self) -> datetime | None:
        """The newest event's time; None before the first event."""
        known = self._newest != code.NEVER
        return _EPOCH + self._newest * _MICROSECOND if known else None

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
        return dict(self._counts)

    @property
    def set_aside(self) -> dict[str, int]:
        """How many events were set aside, by reason."""
        return {reason: n for reason in REASONS if (n := self._counts[reason])}

    @property
    def waiting(self) -> dict[str, int]:
        """How many exposures are open, and how much feedback is held, now."""
        shown = sum(interval.rows for interval in self._intervals.values())
        return {"exposures": shown, "feedback": len(self._held.waiting)}

    def _open_numbers(self) -> np.ndarray:
        """Return the numbers of all open exposures, by interval."""
        parts = [interval.numbers for _, interval in sorted(self._intervals.items())]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def add(self, events: pl.DataFrame) -> None:
        """Take events of the canonical frame, the next ones in order."""
        if not events.height:
            return
        arrived = Arrived.of(events, self._schema.names, self._newest, self._limits)
        kind = arrived.arrays.kind
        self._counts.update(
            exposures=_number(kind == code.EXPOSURE),
            feedback=_number((kind == code.FEEDBACK) | (kind == code.ZERO)),
            zero=_number(kind == code.ZERO),
        )
        for first, last in self._walks(arrived.watermark):
            self._walk(arrived.part(first, last))
            self._pass(int(arrived.watermark[first]), int(arrived.watermark[last]))
        self._newest = arrived.newest

    def _walks(self, watermark: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield pieces of a chunk: each ends where an interval may be complete or closed."""
        every, longest = self._limits.every, self._limits.longest
        ended = np.diff(watermark // every) + np.diff((watermark - longest) // every)
        cuts = np.flatnonzero(ended) + 1
        bounds = [0, *cuts.tolist(), len(watermark) - 1]
        yield from ((a, b) for a, b in pairwise(bounds) if a < b)

    def _walk(self, arrived: Arrived) -> None:
        """Take events between which no interval closes."""
        shown, held, kind = self._shown, self._held, arrived.arrays.kind
        answers = _number(kind == code.FEEDBACK)
        shown.reserve(_number(kind == code.EXPOSURE), self._open_numbers)
        held.reserve(answers, lambda: held.waiting)
        settled = np.empty((held.following - held.arrays.base + answers, 2), np.int64)
        tables = shown.arrays, shown.following, held.arrays, held.following
        outcome = arrived.outcome
        count = walk(arrived.arrays, self._limits.waits, *tables, outcome, settled)
        self._show(arrived, np.flatnonzero(outcome == code.ACCEPTED))
        self._hold(arrived, np.flatnonzero(outcome == code.HELD))
        self._set_aside(arrived, np.flatnonzero(outcome > code.HELD), settled[:count])
        self._counts.update(counted=_number(outcome == code.COUNTED))

    def _show(self, arrived: Arrived, rows: np.ndarray) -> None:
        numbers = self._shown.numbered(len(rows))
        shown = arrived.events.select(*EVENT_COLUMNS[1:], *self._form.columns)
        opened = self._open(arrived.arrays.time[rows])
        for number in np.unique(opened).tolist():
            chosen = np.flatnonzero(opened == number)
            self._intervals[number].show(shown[rows[chosen]], numbers[chosen])

    def _hold(self, arrived: Arrived, rows: np.ndarray) -> None:
        facts = {"before": arrived.arrays.before[rows], "number": self._held.numbered(len(rows))}
        held = arrived.events.select(*EVENT_COLUMNS, "objective", "value")[rows]
        held = held.with_columns(pl.Series(name, fact) for name, fact in facts.items())
        self._held_rows += [held] if len(rows) else []
        self._open(arrived.arrays.time[rows])

    def _held_frame(self, numbers: np.ndarray) -> pl.DataFrame:
        """Return held feedback by its numbers, in their order."""
        rows = pl.concat(self._held_rows, how="vertical_relaxed")
        wanted = pl.DataFrame({"number": numbers})
        return wanted.join(rows, on="number", maintain_order="left").select(rows.columns)

    def _open(self, times: np.ndarray) -> np.ndarray:
        """Open the intervals of some times; return their numbers."""
        numbers = times // self._limits.every
        for number in np.unique(numbers).tolist():
            self._intervals.setdefault(number, OpenInterval())
        return numbers

    def _set_aside(self, arrived: Arrived, rows: np.ndarray, settled: np.ndarray) -> None:
        parts = [AsidePart(arrived.events[rows], arrived.outcome[rows], rows)] if len(rows) else []
        if len(settled):
            states = self._held.states(settled[:, 0])
            self._counts.update(counted=_number(states == code.COUNTED))
            numbers, order = settled[states != code.COUNTED].T
            if len(numbers):
                held = self._held_frame(numbers)
                parts.append(AsidePart(held, states[states != code.COUNTED], order))
        self._counts.update(**self._aside.put(*parts))

    def _pass(self, passed: int, watermark: int) -> None:
        """Give out what is complete or closed, now that the watermark has moved."""
        due = []
        for number in self._intervals:
            end = (number + 1) * self._limits.every
            # Exposures that come after their interval is complete do not complete it again.
            if passed < end <= watermark:
                due.append((end, 0, number))
            if end + self._limits.longest <= watermark:
                due.append((end + self._limits.longest, 1, number))
        for _, closes, number in sorted(due):
            if closes:
                self._close(number)
            elif self._intervals[number].rows:
                rows = intervals.rows_of(self._schema, self._intervals[number].frame(), None)
                self._ready.append(Exposures(*self._span(number), rows))

    def _span(self, number: int) -> tuple[datetime, datetime]:
        every = self._limits.every * _MICROSECOND
        return _EPOCH + number * every, _EPOCH + (number + 1) * every

    def _close(self, number: int) -> None:
        interval = self._intervals.pop(number)
        if interval.rows:
            labels = self._shown.labels(interval.numbers)
            rows = intervals.rows_of(self._schema, interval.frame(), labels)
            self._ready.append(Batch(*self._span(number), rows))
            self._counts.update(rows=rows.height)
        numbers, every = self._held.waiting, self._limits.every
        numbers = numbers[self._held.times(numbers) // every == number]
        if len(numbers):
            outcomes = np.full(len(numbers), code.UNMATCHED, np.int8)
            part = AsidePart(self._held_frame(numbers), outcomes, numbers)
            self._counts.update(**self._aside.put(part))
            self._held.close(numbers, code.UNMATCHED)
        if self._held_rows:
            self._held_rows = [self._held_frame(self._held.waiting)]

    def ready(self) -> list[Exposures | Batch]:
        """Return what has become complete or closed, each once, in the order of the watermark.

        An interval that is complete comes before one that is closed at the same moment. The order
        does not depend on chunks, so what is done in this order does not either.
        """
        ready, self._ready = self._ready, []
        return ready

    def take_aside(self) -> pl.DataFrame:
        """Return what was set aside since the last call: its `reason`, a `detail`, the event."""
        return self._aside.take()

    def record(self) -> intervals.JoinRecord:
        """Return what `frames` do not tell of its state."""
        shown = [
            intervals.IntervalRecord(number, [level for level, _ in interval.to_save()])
            for number, interval in sorted(self._intervals.items())
            if interval.rows
        ]
        return intervals.JoinRecord(self._newest, self.counts, shown, bool(len(self._held.waiting)))

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return the frames of its state; those that have not changed are the same objects."""
        assert not self._ready, "what is ready is given out before a join is saved"
        labels, waiting = self._shown.labels(self._open_numbers()), self._held.waiting
        frames = {
            intervals.LABELS: pl.DataFrame({str(m): column for m, column in enumerate(labels.T)})
        }
        for number, interval in self._intervals.items():
            for k, (_, frame) in enumerate(interval.to_save()):
                frames[intervals.segment_name(number, k)] = frame
        return frames | ({intervals.HELD: self._held_frame(waiting)} if len(waiting) else {})

    @classmethod
    def restored(
        cls, record: intervals.JoinRecord, schema: Schema, windows: Windows, read: Read
    ) -> Self:
        """Return the join of a record and of frames, which are read by name.

        Raises:
            DataError: They do not fit together.
        """
        join = cls(schema, windows)
        join._newest = record.newest
        join._counts.update(record.counts)
        join._intervals = intervals.restored_shown(record, join._shown, join._limits.every, read)
        if record.held:
            held = intervals.restored_held(join._held, schema, read)
            join._held_rows.append(held)
            join._open(join._held.times(held["number"].to_numpy()))
        return join


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


def _number(where: np.ndarray) -> int:
    return int(np.count_nonzero(where))
