"""Chance: p-values of the normal and the chi-square, and a hash that splits users by it."""

__all__ = ["chi_square_p", "hash_bits", "hash_shares", "holm", "two_sided_p"]

from collections.abc import Sequence
from hashlib import sha256
from math import erfc, exp, lgamma, log, sqrt

import numpy as np
from numpy.typing import NDArray

_WORD = 64


def two_sided_p(z: float) -> float:
    """Return P(|Z| ≥ |z|) for a standard normal Z.

    >>> round(two_sided_p(-1.959964), 6)
    0.05
    """
    return erfc(abs(z) / sqrt(2))


def chi_square_p(x: float, degrees: int) -> float:
    """Return P(χ² ≥ x), the regularised upper gamma Q(degrees/2, x/2).

    Q(½, h) = erfc √h, Q(1, h) = e^−h, and Q(a + 1, h) = Q(a, h) + h^a e^−h / Γ(a + 1).

    >>> round(chi_square_p(5.991465, degrees=2), 6), chi_square_p(0.0, degrees=3)
    (0.05, 1.0)
    """
    h = x / 2
    if h <= 0:
        return 1.0
    a, q = (0.5, erfc(sqrt(h))) if degrees % 2 else (1.0, exp(-h))
    while a < degrees / 2:
        q += exp(a * log(h) - h - lgamma(a + 1))
        a += 1
    return min(q, 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted so that the chance of any false alarm stays below the level.

    The smallest is multiplied by their number, the next by one less, and none may fall below the
    one before it (Holm 1979). What is not a number stays so and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = sorted((p, i) for i, p in enumerate(p_values) if p == p)
    adjusted, highest = [float("nan")] * len(p_values), 0.0
    for place, (p, i) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - place)))
        adjusted[i] = highest
    return adjusted


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
    place = np.arange(words, dtype=np.uint64)
    mixed = _mixed(ids.astype(np.uint64)[:, None] * np.uint64(words) + place, salt)
    return np.unpackbits(mixed.view(np.uint8), axis=1)[:, :bits]


def _mixed(words: NDArray[np.uint64], salt: str) -> NDArray[np.uint64]:
    """Return 64 well-mixed bits per word: the finaliser of SplitMix64, keyed by the salt."""
    key = int.from_bytes(sha256(salt.encode()).digest()[:8], "little")
    x = words * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed
