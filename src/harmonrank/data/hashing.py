"""Hashing: numbers in [0, 1), bits and shares of requests by id, the same for the same salt."""

__all__ = ["RequestShare", "hash_bits", "hash_shares", "hashed", "mixed"]

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from harmonrank.data.log import Log

_WORD = 64


def hash_shares(ids: NDArray[np.integer], salt: str) -> NDArray[np.float64]:
    """Return a number in [0, 1) per id: the same for the same salt, unrelated for another.

    >>> hash_shares(np.array([1, 2, 3]), "experiment").round(3)
    array([0.919, 0.185, 0.701])
    """
    high = _mixed(ids.astype(np.uint64), salt) >> np.uint64(11)
    return high.astype(np.float64) * 2.0**-53


def hash_bits(ids: NDArray[np.integer], salt: str, bits: int) -> NDArray[np.uint8]:
    """Return (ids, bits) of 0 and 1: each column halves the ids in another way."""
    words = -(-bits // _WORD)
    number = np.arange(words, dtype=np.uint64)
    mixed = _mixed(ids.astype(np.uint64)[:, None] * np.uint64(words) + number, salt)
    return np.unpackbits(mixed.view(np.uint8), axis=1)[:, :bits]


def _mixed(words: NDArray[np.uint64], salt: str) -> NDArray[np.uint64]:
    key = int.from_bytes(sha256(salt.encode()).digest()[:8], "little")
    return mixed(words * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key))


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 well-mixed bits per word: the finaliser of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return bits


def hashed(request: np.ndarray, salt: int = 0) -> np.ndarray:
    """Return a number in [0, 1) of each request, as good as random.

    >>> hashed(np.array([1, 1, 2])).round(3)
    array([0.567, 0.567, 0.591])
    """
    start = np.uint64((salt * 0xD1B54A32D192ED03 + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)
    fractions: np.ndarray = mixed(request.astype(np.int64).view(np.uint64) + start) / 2.0**64
    return fractions


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

    def __call__(self, log: "Log", first: int) -> np.ndarray:
        """Return the numbers of the chosen rows in a block."""
        request = first + np.arange(log.rows) if log.request is None else log.request
        # Beside 0, by which requests are drawn to be measured on.
        chosen = hashed(request, self.seed + 1) < self.share
        return np.flatnonzero(chosen != self.others)
