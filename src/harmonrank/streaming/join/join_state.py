"""Join state: all that a join knows between two events."""

__all__ = ["NEVER", "JoinState"]

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import polars as pl

from harmonrank.streaming.join.aside import REASONS, Aside
from harmonrank.streaming.join.intervals import Batch, Exposures, OpenInterval
from harmonrank.streaming.join.tables import HeldTable, ShownTable
from harmonrank.streaming.sources.events import EventForm

NEVER = -(1 << 62)
"""A time before all others, from which any window may be taken."""

_COUNTS = ("exposures", "feedback", "counted", "zero", "rows", *REASONS)


@dataclass
class JoinState:
    """Open intervals with the tables of their keys, and what is ready to be given out.

    Attributes:
        shown: Keys, times and labels of open exposures.
        held: Feedback that waits for its exposure.
        aside: What was set aside and not taken yet.
        intervals: Those that are open, by their number since 1970.
        ready: What is complete or closed and not given out yet, in order.
        counts: What came, and what became of it.
        newest: The newest time so far, in microseconds.
    """

    shown: ShownTable
    held: HeldTable
    aside: Aside
    intervals: dict[int, OpenInterval] = field(default_factory=dict)
    ready: list[Exposures | Batch] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))
    newest: int = NEVER

    @classmethod
    def new(cls, form: EventForm) -> Self:
        """Return the state before the first event."""
        return cls(ShownTable(len(form.schema.names)), HeldTable(), Aside(form))

    def count(self, **counts: int) -> None:
        """Add to the counts."""
        for name, number in counts.items():
            self.counts[name] += int(number)

    def interval(self, number: int) -> OpenInterval:
        """Return an open interval, a new one if need be."""
        return self.intervals.setdefault(number, OpenInterval())

    def open_numbers(self) -> np.ndarray:
        """Return the numbers of all open exposures, by interval."""
        parts = [interval.numbers for _, interval in sorted(self.intervals.items())]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def held_rows(self, numbers: np.ndarray) -> pl.DataFrame:
        """Return held feedback by its numbers, in their order."""
        frames = [
            interval.held.frame() for interval in self.intervals.values() if interval.held.rows
        ]
        wanted = pl.DataFrame({"number": numbers})
        rows = pl.concat(frames, how="vertical_relaxed")
        return wanted.join(rows, on="number", maintain_order="left").select(rows.columns)
