"""IdCodes: IDs to rows of a table; the rarest share rows by a hash where there are too many."""

__all__ = ["IdCodes"]

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Self

import numpy as np
from msgspec import Meta

from harmonrank.support.storage import Array

_MOST_DENSE = 1 << 25
_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class IdCodes:
    """Gives IDs their codes: 0 is the unknown, then come known IDs, then shared rows.

    Attributes:
        known: IDs with a row of their own, ascending.
        shared: Rows that all other IDs are hashed to; with none, they are the unknown.

    >>> codes = IdCodes.fit(np.array([7, 9]), np.array([3, 1]), most=10)
    >>> codes.encode(np.array([9, 8, 7])).tolist()
    [2, 0, 1]
    """

    known: Annotated[np.ndarray, Array(("ids",), "int64", strictly=True, least=0)]
    shared: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0

    @classmethod
    def fit(cls, ids: np.ndarray, counts: np.ndarray, most: int) -> Self:
        """Give each ID a row; beyond `most`, the rarest are hashed to a quarter of the rows."""
        if len(ids) <= most:
            return cls(np.sort(ids).astype(np.int64))
        shared = max(most // 4, 1)
        kept = np.argsort(-counts, kind="stable")[: most - shared]
        return cls(np.sort(ids[kept]).astype(np.int64), shared)

    @property
    def slots(self) -> int:
        """How many codes there are, the unknown one included."""
        return 1 + len(self.known) + self.shared

    def encode(self, ids: np.ndarray) -> np.ndarray:
        """Return the code of each ID, int32."""
        place = self.find(ids)
        other = np.zeros(len(ids), np.int32)
        if self.shared:
            mixed = (ids.astype(np.uint64) * _FIBONACCI) >> np.uint64(32)
            other = (1 + len(self.known) + mixed % np.uint64(self.shared)).astype(np.int32)
        return np.where(place >= 0, place + 1, other).astype(np.int32)

    def find(self, ids: np.ndarray) -> np.ndarray:
        """Return where each ID stands among the known ones, int32; −1 if it is not there."""
        if len(self.known) == 0:
            return np.full(len(ids), -1, np.int32)
        if self._dense is not None:
            low, high = self.known[0] - 1, self.known[-1] + 1
            found: np.ndarray = self._dense[np.clip(ids, low, high) - low]
            return found
        place = np.minimum(np.searchsorted(self.known, ids), len(self.known) - 1)
        return np.where(self.known[place] == ids, place, -1).astype(np.int32)

    @cached_property
    def _dense(self) -> np.ndarray | None:
        """The place of every ID between the ends, if they lie close: one read beats a search."""
        low, high = int(self.known[0]), int(self.known[-1])
        if high - low > min(_MOST_DENSE, 16 * len(self.known) + 65_536):
            return None
        places = np.full(high - low + 3, -1, np.int32)
        places[self.known - low + 1] = np.arange(len(self.known), dtype=np.int32)
        return places
