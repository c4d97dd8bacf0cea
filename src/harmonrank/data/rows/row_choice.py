"""Row choice: which rows of a log in blocks are set aside, the same ones at every reading."""

__all__ = ["RequestShare", "hashed"]

from dataclasses import dataclass

import numpy as np

from harmonrank.data.hashing import mixed
from harmonrank.data.log import Log


def hashed(request: np.ndarray, salt: int = 0) -> np.ndarray:
    """Return a number in [0, 1) of each request, as good as random.

    >>> hashed(np.array([1, 1, 2])).round(3)
    array([0.567, 0.567, 0.591])
    """
    start = np.uint64((salt * 0xD1B54A32D192ED03 + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)
    found: np.ndarray = mixed(request.astype(np.int64).view(np.uint64) + start) / 2.0**64
    return found


@dataclass(frozen=True)
class RequestShare:
    """About this share of the requests, with all their rows; of rows where no column tells them.

    Attributes:
        share: From 0 to 1.
        seed: Decides which.
        others: Take those that are left instead.
    """

    share: float
    seed: int
    others: bool = False

    def __call__(self, log: Log, first: int) -> np.ndarray:
        """Return the places of the chosen rows in a block."""
        request = first + np.arange(log.rows) if log.request is None else log.request
        # Beside 0, by which requests are drawn to be measured on.
        chosen = hashed(request, self.seed + 1) < self.share
        return np.flatnonzero(chosen != self.others)
