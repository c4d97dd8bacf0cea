"""Join tables: the arrays of open exposures and of held feedback, which grow and are cleared."""

__all__ = ["HeldTable", "ShownTable", "keys_of"]

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from harmonrank.streaming.join.arrays import WAITING, HeldArrays, ShownArrays
from harmonrank.streaming.join.kernels import chain, forget, insert

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
    size = _LEAST
    while size < 2 * rows:
        size *= 2
    return np.full(size, -1, np.int64)


def _moved(array: np.ndarray, first: int, last: int, room: int) -> np.ndarray:
    """Return rows of an array, with room for more behind them."""
    found = np.empty((last - first + room, *array.shape[1:]), array.dtype)
    found[: last - first] = array[first:last]
    return found


class _Table:
    """Numbers what it gets; `following` is the next number."""

    following = 0

    def numbered(self, rows: int) -> np.ndarray:
        """Return the numbers of the next rows."""
        self.following += rows
        return np.arange(self.following - rows, self.following)


class ShownTable(_Table):
    """The exposures of open intervals: keys, times and labels."""

    def __init__(self, objectives: int) -> None:
        words = -(-objectives // 64)
        self._objectives = objectives
        self.arrays = ShownArrays(
            _slots(_LEAST),
            0,
            np.empty((_LEAST, 2), np.int64),
            np.empty(_LEAST, np.int64),
            np.empty((_LEAST, words), np.int64),
        )

    def reserve(self, more: int, open_numbers: Callable[[], np.ndarray]) -> None:
        """Make room for more exposures; those that are not open any more are forgotten."""
        old = self.arrays
        last = self.following - old.base
        if last + more <= len(old.times):
            return
        alive = open_numbers()
        base = int(alive.min(initial=self.following))
        # As many again, so that rows are moved a few times only.
        first, room = base - old.base, more + self.following - base
        moved = (_moved(array, first, last, room) for array in (old.keys, old.times, old.labels))
        keys, times, labels = moved
        self.arrays = ShownArrays(_slots(len(times)), base, keys, times, labels)
        insert(self.arrays, alive)

    def put(self, keys: np.ndarray, times: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Add exposures that were open when they were saved; return their numbers."""
        self.reserve(len(keys), lambda: np.arange(self.following))
        numbers = self.numbered(len(keys))
        arrays, rows = self.arrays, numbers - self.arrays.base
        arrays.keys[rows], arrays.times[rows] = keys, times
        arrays.labels[rows] = _packed(labels, arrays.labels.shape[1])
        insert(arrays, numbers)
        return numbers

    def labels(self, numbers: np.ndarray) -> np.ndarray:
        """Return the labels of some exposures, (rows, objectives) of 0 and 1."""
        words = self.arrays.labels[numbers - self.arrays.base]
        bits = np.arange(self._objectives)
        found: np.ndarray = ((words[:, bits >> 6] >> (bits & 63)) & 1).astype(np.uint8)
        return found

    def forget(self, numbers: np.ndarray) -> None:
        """Close some exposures."""
        forget(self.arrays, numbers)


def _packed(labels: np.ndarray, words: int) -> np.ndarray:
    packed = np.zeros((len(labels), words), np.int64)
    for m in range(labels.shape[1]):
        packed[:, m >> 6] |= labels[:, m].astype(np.int64) << (m & 63)
    return packed


class HeldTable(_Table):
    """Feedback that waits for its exposure."""

    def __init__(self) -> None:
        self.arrays = HeldArrays(
            _slots(_LEAST),
            0,
            np.empty((_LEAST, 2), np.int64),
            np.empty((_LEAST, 3), np.int64),
            np.empty((_LEAST, 2), np.int64),
            np.empty(_LEAST, np.int8),
        )

    @property
    def waiting(self) -> np.ndarray:
        """The numbers of those that still wait, ascending."""
        state = self.arrays.state[: self.following - self.arrays.base]
        return self.arrays.base + np.flatnonzero(state == WAITING)

    def reserve(self, more: int) -> None:
        """Make room for more; what does not wait any more is forgotten."""
        old = self.arrays
        last = self.following - old.base
        if last + more <= len(old.state):
            return
        alive = self.waiting
        base = int(alive[0]) if len(alive) else self.following
        first = base - old.base
        room = more + (last - first) // 2
        moved = (old.keys, old.facts, old.links, old.state)
        keys, facts, links, state = (_moved(array, first, last, room) for array in moved)
        self.arrays = HeldArrays(_slots(len(state)), base, keys, facts, links, state)
        chain(self.arrays, alive)

    def put(self, keys: np.ndarray, facts: Sequence[np.ndarray]) -> np.ndarray:
        """Add feedback that was held when it was saved, in order; return its numbers."""
        self.reserve(len(keys))
        numbers = self.numbered(len(keys))
        arrays, rows = self.arrays, numbers - self.arrays.base
        arrays.keys[rows], arrays.state[rows] = keys, WAITING
        arrays.facts[rows] = np.stack(facts, axis=1)
        chain(arrays, numbers)
        return numbers

    def states(self, numbers: np.ndarray) -> np.ndarray:
        """Return what became of some of them; −1 for those that are forgotten since."""
        rows = numbers - self.arrays.base
        return np.where(rows < 0, np.int8(-1), self.arrays.state[np.maximum(rows, 0)])

    def times(self, numbers: np.ndarray) -> np.ndarray:
        """Return the times of some of them."""
        found: np.ndarray = self.arrays.facts[numbers - self.arrays.base, 0]
        return found

    def close(self, numbers: np.ndarray, state: int) -> None:
        """Let some of them wait no longer."""
        self.arrays.state[numbers - self.arrays.base] = state
