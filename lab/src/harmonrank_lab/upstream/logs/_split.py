"""The split of a log into train, valid and test, decided by one key per row."""

__all__ = ["PARTS", "Cuts", "KeyCounts"]

from dataclasses import dataclass

import numpy as np

from harmonrank.support.errors import DataError

PARTS = ("train", "valid", "test")

_SHARES = (2, 1, 1)
"""The paper's 1M, 0.5M and 0.5M rows."""

_MOST_KEYS = 1 << 22


@dataclass(frozen=True)
class Cuts:
    """Where the parts begin: train is [first, valid), valid [valid, test), test [test, ∞)."""

    first: int
    valid: int
    test: int

    def part(self, key: np.ndarray) -> np.ndarray:
        """Return 0, 1 or 2 for train, valid and test, and −1 for rows before all of them.

        >>> Cuts(first=1, valid=5, test=7).part(np.array([0, 1, 5, 6, 7])).tolist()
        [-1, 0, 1, 1, 2]
        """
        edges = [self.first, self.valid, self.test]
        return np.searchsorted(edges, key, side="right") - 1


class KeyCounts:
    """How many rows have each key, in memory that does not grow with the rows.

    Where there are more than four million different keys, two neighbours are counted as one, and
    again, so that a cut falls between pairs, fours, … of keys.
    """

    def __init__(self) -> None:
        self._keys, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._shift = 0

    def add(self, key: np.ndarray) -> None:
        """Count the rows of a chunk."""
        keys, counts = np.unique(key >> self._shift, return_counts=True)
        self._waiting.append((keys, counts))
        if sum(len(k) for k, _ in self._waiting) > _MOST_KEYS:
            self._merge()

    def _merge(self) -> None:
        parts = [(self._keys, self._counts), *self._waiting]
        self._waiting = []
        keys, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
        while True:
            self._keys, place = np.unique(keys, return_inverse=True)
            self._counts = np.bincount(place, counts).astype(np.int64)
            if len(self._keys) <= _MOST_KEYS:
                return
            self._shift += 1
            keys, counts = self._keys >> 1, self._counts

    def cuts(self, rows: tuple[int | None, int | None, int | None] = (None, None, None)) -> Cuts:
        """Return the cuts nearest to the wanted numbers of rows; those left out share the rest.

        Shares are 2 : 1 : 1. Test has the largest keys, valid those before it, train those
        before valid; rows before train are left out. Rows of one key stay together.

        Raises:
            DataError: There are fewer rows than wanted, or a part would be empty.
        """
        self._merge()
        total = int(self._counts.sum())
        counts = _wanted(total, rows)
        above = np.concatenate([np.cumsum(self._counts[::-1])[::-1], [0]])

        def cut(rows_above: int) -> int:
            place = int(np.abs(above - rows_above).argmin())
            key = self._keys[place] if place < len(self._keys) else self._keys[-1] + 1
            return int(key) << self._shift

        cuts = Cuts(*(cut(sum(counts[k:])) for k in range(3)))
        if (
            not cuts.first < cuts.valid < cuts.test
            or cuts.test > int(self._keys[-1]) << self._shift
        ):
            raise DataError(
                f"The log cannot be divided: {total:,} rows with {len(self._keys):,} different "
                "seconds or users leave a part empty; give a longer log or other numbers of rows."
            )
        return cuts


def _wanted(total: int, rows: tuple[int | None, int | None, int | None]) -> list[int]:
    given = sum(n for n in rows if n is not None)
    rest, share = total - given, sum(s for s, n in zip(_SHARES, rows, strict=True) if n is None)
    if rest < (share > 0):
        raise DataError(f"The log has {total:,} rows, fewer than the {given:,} that are wanted.")
    shares = zip(_SHARES, rows, strict=True)
    counts = [rest * s // share if n is None else n for s, n in shares]
    # What rounding leaves goes to the first part that may have it.
    for k, n in enumerate(rows):
        if n is None:
            counts[k] += total - sum(counts)
            break
    return counts
