"""Join saved: a join as a record and frames, and back.

Beside the segments of each open interval there is a frame with the labels of all open exposures,
and one of the held feedback that still waits.
"""

__all__ = [
    "JoinRecord",
    "Read",
    "restored_held",
    "restored_shown",
    "saved_frames",
    "saved_record",
]

from collections.abc import Callable, Mapping
from typing import Annotated

import numpy as np
import polars as pl
from msgspec import Meta, Struct

from harmonrank.data import Schema
from harmonrank.streaming.join import arrays as code
from harmonrank.streaming.join.intervals import OpenInterval, Segments
from harmonrank.streaming.join.tables import HeldTable, ShownTable, keys_of
from harmonrank.support.errors import DataError

_LABELS, _HELD = "labels", "held"

_Whole = Annotated[int, Meta(ge=0)]
_Level = Annotated[int, Meta(ge=0, le=30)]

Read = Callable[[str], pl.DataFrame]


class _IntervalRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """An open interval with exposures, and the level of each frame of these."""

    number: _Whole
    shown: list[_Level]


class JoinRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """What a commit knows of a join beside its frames; `held` tells whether feedback waits."""

    newest: Annotated[int, Meta(ge=-(1 << 62), lt=1 << 62)] = code.NEVER
    counts: dict[str, _Whole] = {}
    intervals: list[_IntervalRecord] = []
    held: bool = False


def saved_frames(
    intervals: Mapping[int, OpenInterval], labels: np.ndarray, held: pl.DataFrame | None
) -> dict[str, pl.DataFrame]:
    """Return the frames of a join by name; those that have not changed are the same objects.

    Args:
        intervals: Those that are open.
        labels: Of their exposures, by interval.
        held: Feedback that waits.
    """
    frames = {_LABELS: pl.DataFrame({str(m): column for m, column in enumerate(labels.T)})}
    for number, interval in intervals.items():
        for k, (_, frame) in enumerate(interval.shown.to_save()):
            frames[_name(number, k)] = frame
    return frames if held is None else frames | {_HELD: held}


def saved_record(
    newest: int, counts: dict[str, int], intervals: Mapping[int, OpenInterval], *, held: bool
) -> JoinRecord:
    """Return what the frames do not tell."""
    levels = {n: [level for level, _ in i.shown.to_save()] for n, i in sorted(intervals.items())}
    shown = [_IntervalRecord(number, found) for number, found in levels.items() if found]
    return JoinRecord(newest, counts, shown, held)


def _name(number: int, k: int) -> str:
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
    labels = read(_LABELS).to_numpy() if record.intervals else np.empty((0, 0), np.uint8)
    for saved in record.intervals:
        frames = [(n, read(_name(saved.number, k))) for k, n in enumerate(saved.shown)]
        rows = Segments(frames)
        frame, given = rows.frame(), labels[: rows.rows]
        labels, times = labels[rows.rows :], _times(frame)
        if saved.number in intervals or not (times // every == saved.number).all():
            raise DataError("Events are in the wrong interval; the state is damaged.")
        if given.shape != (rows.rows, table.objectives) or given.max(initial=0) > 1:
            raise DataError("Labels do not fit their rows; the state is damaged.")
        numbers = table.put(keys_of(frame), times, given)
        intervals[saved.number] = OpenInterval(rows, numbers)
    if len(labels):
        raise DataError("Labels do not fit their rows; the state is damaged.")
    return intervals


def restored_held(table: HeldTable, schema: Schema, read: Read) -> pl.DataFrame:
    """Return held feedback, which is put into an empty table, in order of arrival."""
    held = read(_HELD)
    objective = held["objective"].cast(pl.Enum(list(schema.names))).to_physical().cast(pl.Int64)
    facts = (_times(held), held["before"].to_numpy(), objective.to_numpy())
    return held.with_columns(pl.Series("number", table.put(keys_of(held), facts)))


def _times(frame: pl.DataFrame) -> np.ndarray:
    return frame["time"].dt.timestamp("us").to_numpy()
