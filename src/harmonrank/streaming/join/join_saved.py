"""Join saved: the state of a join as a record and frames, and back.

Beside the segments of each open interval there are two frames of bits: the labels of all open
exposures, and which of the held feedback still waits.
"""

__all__ = ["JoinRecord", "Read", "join_frames", "join_record", "restored_join"]

from collections.abc import Callable, Iterator
from typing import Annotated

import numpy as np
import polars as pl
from msgspec import Meta, Struct

from harmonrank.data import Schema
from harmonrank.streaming.join import arrays as code
from harmonrank.streaming.join.intervals import Segments
from harmonrank.streaming.join.join_state import JoinState
from harmonrank.streaming.join.tables import keys_of
from harmonrank.streaming.sources.events import EventForm
from harmonrank.support.errors import DataError

_LABELS, _WAITS = "labels", "waits"

_Whole = Annotated[int, Meta(ge=0)]
_Level = Annotated[int, Meta(ge=0, le=30)]

Read = Callable[[str], pl.DataFrame]


class _IntervalRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """An open interval, and the level of each frame of its segments."""

    number: _Whole
    shown: list[_Level]
    held: list[_Level]


class JoinRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """What a commit knows of a join beside its frames."""

    newest: Annotated[int, Meta(ge=-(1 << 62), lt=1 << 62)]
    counts: dict[str, _Whole]
    intervals: list[_IntervalRecord]


def join_frames(state: JoinState) -> dict[str, pl.DataFrame]:
    """Return the frames of a join by name; those that have not changed are the same objects."""
    assert not state.ready, "what is ready is given out before a join is saved"
    frames = {}
    for number, interval in state.intervals.items():
        for kind, rows in (("shown", interval.shown), ("held", interval.held)):
            for place, (_, frame) in enumerate(rows.to_save()):
                frames[_name(kind, number, place)] = frame
    labels = state.shown.labels(state.open_numbers()).astype(bool)
    waits = state.held.states(_held_numbers(state)) == code.WAITING
    return frames | {_LABELS: _bits(labels), _WAITS: _bits(waits[:, None])}


def join_record(state: JoinState) -> JoinRecord:
    """Return what the frames do not tell."""
    intervals = []
    for number, interval in sorted(state.intervals.items()):
        shown, held = ([n for n, _ in s.to_save()] for s in (interval.shown, interval.held))
        intervals.append(_IntervalRecord(number, shown, held))
    return JoinRecord(state.newest, state.counts, intervals)


def _held_numbers(state: JoinState) -> np.ndarray:
    parts = [interval.held_numbers for _, interval in sorted(state.intervals.items())]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _name(kind: str, number: int, place: int) -> str:
    return f"{kind}-{number}-{place}"


def _bits(bits: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({str(m): column for m, column in enumerate(bits.T)})


def restored_join(record: JoinRecord, schema: Schema, every: int, read: Read) -> JoinState:
    """Return the state of a join.

    Args:
        record: What its frames do not tell.
        schema: Which columns exposures have.
        every: Microseconds of an interval.
        read: Reads a frame by its name.

    Raises:
        DataError: Its parts do not fit together.
    """
    state = JoinState.new(EventForm(schema))
    state.newest = record.newest
    state.counts |= record.counts
    if len({interval.number for interval in record.intervals}) < len(record.intervals):
        raise DataError("An interval of the state is there twice; the state is damaged.")
    shown = dict(_segments(record, "shown", every, read))
    labels = _restored_bits(_LABELS, len(schema.names), shown, read)
    for (number, rows), given in zip(shown.items(), labels, strict=True):
        frame = rows.frame()
        numbers = state.shown.put(keys_of(frame), _times(frame), given)
        state.interval(number).restore(rows, numbers)
    _restore_held(state, dict(_segments(record, "held", every, read)), schema, read)
    return state


def _segments(
    record: JoinRecord, kind: str, every: int, read: Read
) -> Iterator[tuple[int, Segments]]:
    for interval in record.intervals:
        levels = interval.shown if kind == "shown" else interval.held
        saved = [(n, read(_name(kind, interval.number, k))) for k, n in enumerate(levels)]
        if saved:
            rows = Segments(saved)
            if not (_times(rows.frame()) // every == interval.number).all():
                raise DataError("Events are in the wrong interval; the state is damaged.")
            yield interval.number, rows


def _restored_bits(
    name: str, columns: int, segments: dict[int, Segments], read: Read
) -> list[np.ndarray]:
    """Return the bits of each interval, (rows, columns)."""
    if not segments:
        return []
    bits, ends = read(name), np.cumsum([rows.rows for rows in segments.values()], dtype=np.int64)
    expected = {str(m): pl.Boolean() for m in range(columns)}
    if dict(bits.schema) != expected or bits.height != ends[-1]:
        raise DataError("Labels do not fit their rows; the state is damaged.")
    return np.split(bits.to_numpy(), ends[:-1])


def _times(frame: pl.DataFrame) -> np.ndarray:
    return frame["time"].dt.timestamp("us").to_numpy()


def _restore_held(
    state: JoinState, segments: dict[int, Segments], schema: Schema, read: Read
) -> None:
    """Take held feedback; of one key, what arrived first must come first again."""
    waits = _restored_bits(_WAITS, 1, segments, read)
    frames = [
        rows.frame().filter(waiting[:, 0]).with_columns(interval=pl.lit(number))
        for (number, rows), waiting in zip(segments.items(), waits, strict=True)
    ]
    if not frames:
        return
    held = pl.concat(frames, how="vertical_relaxed").sort("number")
    objective = held["objective"].cast(pl.Enum(list(schema.names))).to_physical().cast(pl.Int64)
    facts = (_times(held), held["before"].to_numpy(), objective.to_numpy())
    held = held.with_columns(pl.Series("number", state.held.put(keys_of(held), facts)))
    for (number,), rows in held.group_by(["interval"], maintain_order=True):
        state.interval(int(str(number))).held.add(rows.drop("interval"))
