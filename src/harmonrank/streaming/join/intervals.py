"""Intervals: those that are open, and what is given out of those that are complete or closed."""

__all__ = ["Batch", "Exposures", "OpenInterval", "Segments", "rows_of"]

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from harmonrank.data import Schema

_MERGED = 8


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
class Batch(Exposures):
    """The labelled rows of an interval that is closed: those of `Exposures`, and the labels.

    Exposures that came after the interval was complete, but before it was closed, are here too.
    """


class Segments:
    """Rows that only grow, in frames of which a commit writes only those that are new.

    A frame that a commit has written stays the same object. Eight frames of one level are merged
    into one of the next, so that a row is written once for each power of eight of the commits that
    it lives through, which is a few times.

    Args:
        saved: The level and the frame of each that a commit holds.
    """

    def __init__(self, saved: Iterable[tuple[int, pl.DataFrame]] = ()) -> None:
        self._saved, self._new = list(saved), list[pl.DataFrame]()

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(frame.height for frame in self._frames())

    def _frames(self) -> list[pl.DataFrame]:
        return [*(frame for _, frame in self._saved), *self._new]

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows at the end."""
        self._new.append(frame)

    def frame(self) -> pl.DataFrame:
        """Return all rows."""
        return _joined(self._frames(), rechunk=False)

    def to_save(self) -> list[tuple[int, pl.DataFrame]]:
        """Return all rows as frames with their levels."""
        parts = self._saved
        if self._new:
            parts.append((0, _joined(self._new)))
            self._new = []
        while len(parts) >= _MERGED and parts[-_MERGED][0] == parts[-1][0]:
            merged = _joined([frame for _, frame in parts[-_MERGED:]])
            parts[-_MERGED:] = [(parts[-1][0] + 1, merged)]
        return parts


def _joined(frames: list[pl.DataFrame], *, rechunk: bool = True) -> pl.DataFrame:
    # A context column is without a type as long as none of its values has been seen.
    return pl.concat(frames, how="vertical_relaxed", rechunk=rechunk)


class OpenInterval:
    """Exposures of an interval that is not closed.

    Args:
        shown: What a commit holds of them.
        numbers: Those of these exposures in their table.
    """

    def __init__(self, shown: Segments | None = None, numbers: np.ndarray | None = None) -> None:
        self.shown = shown or Segments()
        self._numbers = [np.empty(0, np.int64) if numbers is None else numbers]

    def show(self, rows: pl.DataFrame, numbers: np.ndarray) -> None:
        """Add exposures and their numbers in the table."""
        self.shown.add(rows)
        self._numbers.append(numbers)

    @property
    def numbers(self) -> np.ndarray:
        """Those of the exposures in their table."""
        # Made one array in place, so that it is done once.
        self._numbers = [np.concatenate(self._numbers)]
        return self._numbers[0]


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
