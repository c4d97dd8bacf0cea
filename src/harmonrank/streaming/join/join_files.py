"""Join files: the state of a join in a folder.

Beside the segments of each open interval lie two bitmaps, named by their content so that one
that has not changed is linked: the labels of its exposures, and which of its held feedback waits.
"""

__all__ = ["load_state", "save_state"]

import hashlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from msgspec import Meta, Struct, to_builtins

from harmonrank.data import Schema
from harmonrank.data.reading.parquet import writing
from harmonrank.streaming.join.arrays import WAITING
from harmonrank.streaming.join.intervals import Batch, Exposures, OpenInterval
from harmonrank.streaming.join.join_state import JoinState
from harmonrank.streaming.join.tables import keys_of
from harmonrank.streaming.join.windows import Windows
from harmonrank.streaming.sources.events import EventForm
from harmonrank.streaming.sources.segments import SavedSegment, Segments, linked
from harmonrank.support.errors import DataError
from harmonrank.support.storage.files import read_json, sha256, write_json

_FILE = "join.json"
_Whole = Annotated[int, Meta(ge=0)]


class _SavedInterval(Struct, forbid_unknown_fields=True):
    place: Annotated[int, Meta(ge=0)]
    shown: list[SavedSegment]
    held: list[SavedSegment]
    labels: SavedSegment | None
    waiting: SavedSegment | None


class _SavedReady(Struct, forbid_unknown_fields=True):
    kind: Literal["complete", "closed"]
    start: datetime
    end: datetime
    rows: SavedSegment


class _SavedJoin(Struct, forbid_unknown_fields=True):
    settings: dict[str, Any]
    newest: Annotated[int, Meta(ge=-(1 << 62), lt=1 << 62)]
    segments: _Whole
    counts: dict[str, _Whole]
    kinds: dict[str, str]
    intervals: list[_SavedInterval]
    ready: list[_SavedReady]
    aside: SavedSegment | None


def save_state(
    state: JoinState, schema: Schema, windows: Windows, folder: Path, before: Path | None
) -> None:
    """Write a join's state; what has not changed since `before` is linked."""
    folder.mkdir(parents=True)

    def new_name(kind: str) -> str:
        state.segments += 1
        return f"{kind}-{state.segments}.parquet"

    def whole(kind: str, frame: pl.DataFrame) -> SavedSegment:
        name = new_name(kind)
        _write(frame, folder / name)
        return SavedSegment(name, frame.height, sha256(folder / name))

    def of_interval(place: int, interval: OpenInterval) -> _SavedInterval:
        labels = state.shown.labels(interval.numbers).astype(bool)
        waits = state.held.states(interval.held_numbers) == WAITING
        return _SavedInterval(
            place,
            interval.shown.save(folder, before, lambda: new_name("shown")),
            interval.held.save(folder, before, lambda: new_name("held")),
            _save_bits("labels", labels, folder, before),
            _save_bits("waiting", waits[:, None], folder, before),
        )

    aside = state.aside.take()
    state.aside.put_back(aside)
    saved = _SavedJoin(
        settings=_settings(schema, windows),
        newest=state.newest,
        counts=state.counts,
        kinds=state.aside.kinds(),
        intervals=[of_interval(*item) for item in sorted(state.intervals.items())],
        ready=[
            _SavedReady(
                "closed" if isinstance(one, Batch) else "complete",
                one.start,
                one.end,
                whole("ready", one.rows),
            )
            for one in state.ready
        ],
        aside=whole("aside", aside) if aside.height else None,
        segments=0,
    )
    saved.segments = state.segments
    write_json(folder / _FILE, to_builtins(saved))


def _settings(schema: Schema, windows: Windows) -> dict[str, Any]:
    """Return what a state depends on: with other ones it would mean something else."""
    return {
        "every": windows.every.total_seconds(),
        "lateness": windows.lateness.total_seconds(),
        "wait": {name: windows.of(name).total_seconds() for name in schema.names},
        "columns": list(EventForm(schema).columns),
    }


def _save_bits(
    kind: str, bits: np.ndarray, folder: Path, before: Path | None
) -> SavedSegment | None:
    if not len(bits):
        return None
    digest = hashlib.sha256(np.packbits(bits).data).hexdigest()[:32]
    name = f"{kind}-{len(bits)}-{digest}.parquet"
    # Two intervals may have the same bits.
    if not (folder / name).exists() and not linked(name, folder, before):
        frame = pl.DataFrame({str(m): column for m, column in enumerate(bits.T)})
        _write(frame, folder / name)
    return SavedSegment(name, len(bits), sha256(folder / name))


def _write(frame: pl.DataFrame, path: Path) -> None:
    with writing():
        frame.write_parquet(path, compression="lz4", statistics=False)


def load_state(folder: Path, schema: Schema, windows: Windows) -> JoinState:
    """Read what `save_state` wrote.

    Raises:
        DataError: It is damaged, or was saved with other windows or columns.
    """
    saved = read_json(folder / _FILE, _SavedJoin)
    for name, value in _settings(schema, windows).items():
        if saved.settings.get(name) != value:
            raise DataError(
                f"The state in '{folder}' was saved with `{name}` {saved.settings.get(name)}. Got "
                f"{value}; go on with the former, or begin in a new folder."
            )
    state = JoinState.new(EventForm(schema, saved.kinds))
    state.newest, state.segments = saved.newest, saved.segments
    state.counts |= saved.counts
    every = windows.every // timedelta(microseconds=1)
    if len({part.place for part in saved.intervals}) < len(saved.intervals):
        raise DataError(f"'{folder}' is damaged: an interval is there twice; restore it.")
    for part in saved.intervals:
        _load_shown(state, part, folder, len(schema.names), every)
    _load_held(state, saved.intervals, folder, schema, every)
    for one in saved.ready:
        kind = Batch if one.kind == "closed" else Exposures
        state.ready.append(kind(one.start, one.end, one.rows.read(folder)))
    if saved.aside is not None:
        state.aside.put_back(saved.aside.read(folder))
    return state


def _load_bits(saved: SavedSegment | None, folder: Path, rows: int, columns: int) -> np.ndarray:
    frame = pl.DataFrame() if saved is None else saved.read(folder)
    expected = {str(m): pl.Boolean() for m in range(columns)}
    if saved is None or frame.height != rows or dict(frame.schema) != expected:
        raise DataError(f"'{folder}' is damaged: labels do not fit their rows; restore it.")
    return frame.to_numpy()


def _times(frame: pl.DataFrame, place: int, every: int, folder: Path) -> np.ndarray:
    """Return the times of events, all of which are in one interval."""
    times = frame["time"].dt.timestamp("us").to_numpy()
    if not (times // every == place).all():
        raise DataError(f"'{folder}' is damaged: events are in the wrong interval; restore it.")
    return times


def _load_shown(
    state: JoinState, saved: _SavedInterval, folder: Path, objectives: int, every: int
) -> None:
    if not saved.shown:
        return
    segments = Segments.load(folder, saved.shown)
    frame = segments.frame()
    labels = _load_bits(saved.labels, folder, frame.height, objectives)
    times = _times(frame, saved.place, every, folder)
    numbers = state.shown.put(keys_of(frame), times, labels)
    state.interval(saved.place).restore(segments, numbers)


def _load_held(
    state: JoinState, saved: list[_SavedInterval], folder: Path, schema: Schema, every: int
) -> None:
    """Read held feedback; of one key, what arrived first must come first again."""
    frames = []
    for part in saved:
        if part.held:
            frame = Segments.load(folder, part.held).frame()
            _times(frame, part.place, every, folder)
            waits = _load_bits(part.waiting, folder, frame.height, 1)[:, 0]
            frames.append(frame.filter(waits).with_columns(place=pl.lit(part.place)))
    if not frames:
        return
    held = pl.concat(frames).sort("number")
    names = pl.Enum(list(schema.names))
    times = held["time"].dt.timestamp("us").to_numpy()
    objective = held["objective"].cast(names).to_physical().cast(pl.Int64).to_numpy()
    numbers = state.held.put(keys_of(held), (times, held["before"].to_numpy(), objective))
    held = held.with_columns(pl.Series("number", numbers))
    for (place,), rows in held.group_by(["place"], maintain_order=True):
        state.interval(int(str(place))).hold(rows.drop("place"), rows["number"].to_numpy())
