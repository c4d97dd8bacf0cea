"""Join tables: events that arrived, open exposures and held feedback, as arrays."""

__all__ = ["Arrived", "HeldTable", "ShownTable", "keys_of"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl

from harmonrank.streaming.join import kernels as code

_LEAST = 1 << 12
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


def keys_of(events: pl.DataFrame) -> np.ndarray:
    """Return 128 bits of each request and item, (rows, 2) int64.

    They only tell equal from different, so other ones in another process, or by another version
    of Polars, change nothing. That two keys among a billion agree by chance: 1e-21.
    """
    keys = np.empty((events.height, 2), np.int64)
    for column, seed in enumerate((0, 2)):
        request = events["request"].hash(seed).to_numpy() * _FACTORS[0]
        item = events["item"].hash(seed + 1).to_numpy() * _FACTORS[1]
        keys[:, column] = (request + item).view(np.int64)
    return keys


def _slots(rows: int) -> np.ndarray:
    """Return an empty table that is at most half full with so many rows."""
    return np.full(max(_LEAST, 1 << (2 * rows - 1).bit_length()), -1, np.int64)


def _moved(array: np.ndarray, first: int, last: int, room: int) -> np.ndarray:
    """Return rows of an array, with room for more behind them."""
    moved = np.empty((last - first + room, *array.shape[1:]), array.dtype)
    moved[: last - first] = array[first:last]
    return moved


class _Table:
    """Arrays of what is numbered; those who wait no more are forgotten when it grows.

    Args:
        kind: The record of its arrays.
        fill: Puts numbers into an empty table.
        columns: The type of each array and the sizes of its rows.
    """

    def __init__(self, kind: Any, fill: Callable[..., None], *columns: tuple[Any, ...]) -> None:
        arrays = [np.empty((_LEAST, *sizes), dtype) for dtype, *sizes in columns]
        self.arrays, self._fill = kind(_slots(_LEAST), 0, *arrays), fill
        self.following = 0

    def numbered(self, rows: int) -> np.ndarray:
        """Return the numbers of the next rows."""
        self.following += rows
        return np.arange(self.following - rows, self.following)

    def reserve(self, more: int, alive: Callable[[], np.ndarray]) -> None:
        """Make room for more rows; those that are not alive any more are forgotten."""
        _, base, *columns = self.arrays
        last = self.following - base
        if last + more <= len(columns[0]):
            return
        numbers = alive()
        first = int(numbers.min(initial=self.following)) - base
        # As many again, so that rows are moved a few times only.
        columns = [_moved(column, first, last, more + last - first) for column in columns]
        self.arrays = type(self.arrays)(_slots(len(columns[0])), base + first, *columns)
        self._fill(self.arrays, numbers)


class ShownTable(_Table):
    """The exposures of open intervals: keys, times and labels."""

    def __init__(self, objectives: int) -> None:
        self.objectives, whole, labels = objectives, np.int64, (np.uint8, objectives)
        super().__init__(code.ShownArrays, code.insert, (whole, 2), (whole,), labels)

    def put(self, keys: np.ndarray, times: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Add exposures that were open when they were saved; return their numbers."""
        self.reserve(len(keys), lambda: np.arange(self.following))
        numbers = self.numbered(len(keys))
        arrays, rows = self.arrays, numbers - self.arrays.base
        arrays.keys[rows], arrays.times[rows] = keys, times
        arrays.labels[rows] = labels
        code.insert(arrays, numbers)
        return numbers

    def labels(self, numbers: np.ndarray) -> np.ndarray:
        """Return the labels of some exposures, (rows, objectives) of 0 and 1."""
        labels: np.ndarray = self.arrays.labels[numbers - self.arrays.base]
        return labels


class HeldTable(_Table):
    """Feedback that waits for its exposure."""

    def __init__(self) -> None:
        whole = np.int64
        super().__init__(
            code.HeldArrays, code.chain, (whole, 2), (whole, 3), (whole, 2), (np.int8,)
        )

    @property
    def waiting(self) -> np.ndarray:
        """The numbers of those that still wait, ascending."""
        state = self.arrays.state[: self.following - self.arrays.base]
        numbers: np.ndarray = self.arrays.base + np.flatnonzero(state == code.WAITING)
        return numbers

    def put(self, keys: np.ndarray, facts: Sequence[np.ndarray]) -> np.ndarray:
        """Add feedback that was held when it was saved, in order; return its numbers."""
        self.reserve(len(keys), lambda: self.waiting)
        numbers = self.numbered(len(keys))
        arrays, rows = self.arrays, numbers - self.arrays.base
        arrays.keys[rows], arrays.state[rows] = keys, code.WAITING
        arrays.facts[rows] = np.stack(facts, axis=1)
        code.chain(arrays, numbers)
        return numbers

    def states(self, numbers: np.ndarray) -> np.ndarray:
        """Return what became of some of them; −1 for those that are forgotten since."""
        rows = numbers - self.arrays.base
        states = self.arrays.state[np.maximum(rows, 0)]
        known: np.ndarray = np.where(rows < 0, np.int8(-1), states)
        return known

    def times(self, numbers: np.ndarray) -> np.ndarray:
        """Return the times of some of them."""
        times: np.ndarray = self.arrays.facts[numbers - self.arrays.base, 0]
        return times

    def close(self, numbers: np.ndarray, state: int) -> None:
        """Let some of them wait no longer."""
        self.arrays.state[numbers - self.arrays.base] = state


@dataclass(frozen=True)
class Arrived:
    """A chunk of events.

    Attributes:
        events: The canonical frame.
        arrays: What the kernels need of it.
        outcome: What became of each event, as far as it is known.
        watermark: (events + 1,), before the first event and after each.
        newest: The newest time after the last event.
    """

    events: pl.DataFrame
    arrays: code.EventArrays
    outcome: np.ndarray
    watermark: np.ndarray
    newest: int

    @classmethod
    def of(
        cls, events: pl.DataFrame, objectives: Sequence[str], newest: int, limits: code.Limits
    ) -> Self:
        """Return a chunk that follows events of which the newest time is known."""
        kind = _kinds(events)
        times = events["time"].dt.timestamp("us").fill_null(code.NEVER).to_numpy()
        # A malformed event does not move the watermark, whatever it says.
        times = np.where(kind == code.BROKEN, code.NEVER, times)
        latest = np.maximum.accumulate(np.concatenate([[newest], times]))
        watermark = latest - limits.lateness
        closed = (watermark - limits.longest) // limits.every * limits.every
        names = pl.Enum(list(objectives))
        objective = events["objective"].cast(names, strict=False).to_physical()
        known = objective.cast(pl.Int64).fill_null(0).to_numpy()
        keys, before = keys_of(events), watermark[:-1]
        arrays = code.EventArrays(kind, keys, times, before, closed[:-1], known)
        outcome = np.where(kind == code.BROKEN, code.MALFORMED, code.IGNORED).astype(np.int8)
        return cls(events, arrays, outcome, watermark, int(latest[-1]))

    def part(self, first: int, last: int) -> Self:
        """Return some of the events; the watermark stays that of all."""
        arrays = code.EventArrays(*(array[first:last] for array in self.arrays))
        part, outcome = self.events[first:last], self.outcome[first:last]
        return replace(self, events=part, arrays=arrays, outcome=outcome)


def _kinds(events: pl.DataFrame) -> np.ndarray:
    kind = np.full(events.height, code.BROKEN, np.int8)
    kind[(events["event"] == "exposure").fill_null(False).to_numpy()] = code.EXPOSURE
    fed = (events["event"] == "feedback").fill_null(False).to_numpy()
    kind[fed] = code.FEEDBACK
    kind[fed & (events["value"] == 0).fill_null(False).to_numpy()] = code.ZERO
    if "fault" in events.columns:
        kind[events["fault"].is_not_null().to_numpy()] = code.BROKEN
    return kind
