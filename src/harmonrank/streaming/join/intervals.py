"""Intervals: those that are open, what is given out of them, and what is saved of them.

Beside the segments of each open interval there is a frame with the labels of all open exposures,
and one of the held feedback that still waits.
"""

__all__ = [
    "HELD",
    "LABELS",
    "Batch",
    "Exposures",
    "IntervalRecord",
    "JoinRecord",
    "OpenInterval",
    "Read",
    "restored_held",
    "restored_shown",
    "rows_of",
    "segment_name",
]

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from msgspec import Meta, Struct

from harmonrank.data import Schema
from harmonrank.streaming.join import kernels as code
from harmonrank.streaming.join.tables import HeldTable, ShownTable, keys_of
from harmonrank.support.errors import DataError

_MERGED = 8
LABELS, HELD = "labels", "held"
_Whole = Annotated[int, Meta(ge=0)]
_Level = Annotated[int, Meta(ge=0, le=30)]
Read = Callable[[str], pl.DataFrame]


@dataclass(frozen=True)
class Exposures:
    """What was shown in an interval that is complete: without labels, which are still awaited.

    Attributes:
        start: The interval's first moment.
        end: The first moment after it.
        rows: Score, context and truth columns as the schema names them, as it does the request,
            the time and the position, with `item` and `user`; in order of arrival.
    """

    kind: ClassVar[Literal["exposures", "batch"]] = "exposures"
    start: datetime
    end: datetime
    rows: pl.DataFrame


@dataclass(frozen=True)
class Batch(Exposures):
    """The labelled rows of an interval that is closed: those of `Exposures`, and the labels.

    Exposures that came after the interval was complete, but before it was closed, are here too.
    """

    kind = "batch"


class OpenInterval:
    """Exposures of an interval that is not closed, in frames of which a commit writes the new ones.

    A frame that a commit has written stays the same object. Eight frames of one level are merged
    into one of the next, so that a row is written once for each power of eight of the commits that
    it lives through, which is a few times.

    Args:
        saved: The level and the frame of each that a commit holds.
        numbers: Those of their rows in the table of exposures.
    """

    def __init__(
        self, saved: Iterable[tuple[int, pl.DataFrame]] = (), numbers: Iterable[np.ndarray] = ()
    ) -> None:
        self._saved, self._new = list(saved), list[pl.DataFrame]()
        self._numbers = [np.empty(0, np.int64), *numbers]

    def _frames(self) -> list[pl.DataFrame]:
        return [*(frame for _, frame in self._saved), *self._new]

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(frame.height for frame in self._frames())

    @property
    def numbers(self) -> np.ndarray:
        """Those of the exposures in their table."""
        # Made one array in place, so that it is done once.
        self._numbers = [np.concatenate(self._numbers)]
        return self._numbers[0]

    def show(self, rows: pl.DataFrame, numbers: np.ndarray) -> None:
        """Add exposures and their numbers in the table."""
        self._new.append(rows)
        self._numbers.append(numbers)

    def frame(self) -> pl.DataFrame:
        """Return all exposures."""
        return _joined(self._frames(), rechunk=False)

    def to_save(self) -> list[tuple[int, pl.DataFrame]]:
        """Return all exposures as frames with their levels."""
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


class IntervalRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """An open interval with exposures, and the level of each frame of these."""

    number: _Whole
    shown: list[_Level]


class JoinRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """What a commit knows of a join beside its frames; `held` tells whether feedback waits."""

    newest: Annotated[int, Meta(ge=-(1 << 62), lt=1 << 62)] = code.NEVER
    counts: dict[str, _Whole] = {}
    intervals: list[IntervalRecord] = []
    held: bool = False


def segment_name(number: int, k: int) -> str:
    """Return the name of a frame of an interval."""
    return f"shown-{number}-{k}"


def restored_shown(
    record: JoinRecord, table: ShownTable, every: int, read: Read
) -> dict[int, OpenInterval]:
    """Return open intervals, whose exposures are put into a table.

    Args:
        record: What their frames do not tell.
        table: An empty one.
        every: Microseconds of an interval.
        read: Reads a frame by its name.
    """
    intervals: dict[int, OpenInterval] = {}
    labels = read(LABELS).to_numpy() if record.intervals else np.empty((0, 0), np.uint8)
    for saved in record.intervals:
        frames = [(n, read(segment_name(saved.number, k))) for k, n in enumerate(saved.shown)]
        frame = OpenInterval(frames).frame()
        given = labels[: frame.height]
        labels, times = labels[frame.height :], _times(frame)
        if saved.number in intervals or not (times // every == saved.number).all():
            raise DataError("Events are in the wrong interval; the state is damaged.")
        if given.shape != (frame.height, table.objectives) or given.max(initial=0) > 1:
            raise DataError("Labels do not fit their rows; the state is damaged.")
        numbers = table.put(keys_of(frame), times, given)
        intervals[saved.number] = OpenInterval(frames, [numbers])
    if len(labels):
        raise DataError("Labels do not fit their rows; the state is damaged.")
    return intervals


def restored_held(table: HeldTable, schema: Schema, read: Read) -> pl.DataFrame:
    """Return held feedback, which is put into an empty table, in order of arrival."""
    held = read(HELD)
    objective = held["objective"].cast(pl.Enum(list(schema.names))).to_physical().cast(pl.Int64)
    facts = (_times(held), held["before"].to_numpy(), objective.to_numpy())
    return held.with_columns(pl.Series("number", table.put(keys_of(held), facts)))


def _times(frame: pl.DataFrame) -> np.ndarray:
    return frame["time"].dt.timestamp("us").to_numpy()
