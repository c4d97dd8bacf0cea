"""Intervals: those that are open, and what is given out of those that are complete or closed."""

__all__ = ["Batch", "Exposures", "OpenInterval", "rows_of"]

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from harmonrank.data import Schema
from harmonrank.streaming.sources.segments import Segments


@dataclass(frozen=True)
class Exposures:
    """What was shown in an interval that is complete: without labels, which are still awaited.

    Attributes:
        start: The interval's first moment.
        end: The first moment after it.
        rows: Score, context and truth columns as the schema names them, as it does the request,
            the time and the position, with `item` and `user`; in order of arrival.
    """

    start: datetime
    end: datetime
    rows: pl.DataFrame


@dataclass(frozen=True)
class Batch:
    """The labelled rows of an interval that is closed: those of `Exposures`, and the labels.

    Exposures that came after the interval was complete, but before it was closed, are here too.
    """

    start: datetime
    end: datetime
    rows: pl.DataFrame


class OpenInterval:
    """Exposures of an interval that is not closed, and held feedback that is dated in it."""

    def __init__(self) -> None:
        self.shown, self.held = Segments(), Segments()
        self._numbers: list[np.ndarray] = []
        self._held_numbers: list[np.ndarray] = []

    def show(self, rows: pl.DataFrame, numbers: np.ndarray) -> None:
        """Add exposures and their numbers in the table."""
        self.shown.add(rows)
        self._numbers.append(numbers)

    def hold(self, rows: pl.DataFrame, numbers: np.ndarray) -> None:
        """Add held feedback and its numbers in the table."""
        self.held.add(rows)
        self._held_numbers.append(numbers)

    def restore(self, shown: Segments, numbers: np.ndarray) -> None:
        """Take exposures from files that need not be written again."""
        self.shown, self._numbers = shown, [numbers]

    @property
    def numbers(self) -> np.ndarray:
        """Those of the exposures."""
        return _joined(self._numbers)

    @property
    def held_numbers(self) -> np.ndarray:
        """Those of the held feedback, ascending."""
        return _joined(self._held_numbers)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    # Made one array in place, so that it is done once.
    if len(parts) != 1:
        parts[:] = [np.concatenate(parts) if parts else np.empty(0, np.int64)]
    return parts[0]


def rows_of(schema: Schema, shown: pl.DataFrame, labels: np.ndarray | None) -> pl.DataFrame:
    """Return exposures as rows with the schema's own names, and their labels if they are known."""
    own = {"request": schema.request, "time": schema.time, "position": schema.position}
    rows = shown.rename({name: other for name, other in own.items() if other is not None})
    if schema.time and any(entry.startswith("time:") for entry in schema.context):
        rows = rows.with_columns(shown["time"])
    if labels is None:
        return rows
    columns = [pl.Series(name, labels[:, m]) for m, name in enumerate(schema.names)]
    return rows.with_columns(columns)
