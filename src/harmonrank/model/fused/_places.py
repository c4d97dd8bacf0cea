"""Places: where the rows of the tables are that a row of the log needs."""

__all__ = ["place_codes", "place_scores", "touch"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import product_kernel
from harmonrank.model.fused._softmax import ONE, ZERO

Array = NDArray[Any]


@product_kernel
def touch(codes: Array, shares: Array, index: Array, smooth: bool) -> float:
    """Read one number of each row, which lie all over memory, and use none.

    Nothing waits for these reads, so many are under way at once; the rows are then in cache.
    """
    touched, last = np.uint16(0), codes.shape[1] - 1
    for i in range(len(index)):
        touched ^= codes[np.uint64(index[i]), last]
    most = np.float32(0)
    if smooth:
        for i in range(len(index)):
            most = max(most, shares[np.uint64(index[i]), 0])
    return float(touched + most)  # or the compiler would drop the loops


@product_kernel
def place_codes(
    codes: Array, shares: Array, index: Array, first: Array, smooth: bool, place: Array,
    share: Array, k: int, n: int,
) -> None:  # fmt: skip
    """Write the places of coded rows, (columns, rows), and the shares of the rows after them."""
    for m in range(codes.shape[1]):
        base = np.int32(first[m])
        for r in range(n):
            place[k, m, r] = base + np.int32(codes[np.uint64(index[r]), m])
    if smooth:
        for m in range(shares.shape[1]):
            for r in range(n):
                share[k, m, r] = shares[np.uint64(index[r]), m]


@product_kernel
def place_scores(
    scores: Array, context: Array, first: Array, sizes: Array, knots: Array, inner: Array,
    smooth: bool, place: Array, share: Array, n: int,
) -> int:  # fmt: skip
    """Write the places of raw scores and context codes; return how many codes have none."""
    M, unknown, none = scores.shape[1], 0, np.int32(0)
    for m in range(M):
        for r in range(n):
            share[m, r] = scores[r, m]
        _search(inner, m, share, place, n)
        if smooth:
            for r in range(n):
                low = knots[m, np.uint32(place[m, r])]
                high = knots[m, np.uint32(place[m, r]) + np.uint32(1)]
                part = np.divide(share[m, r] - low, high - low)
                share[m, r] = min(max(part, ZERO), ONE)
        base = np.int32(first[m])
        for r in range(n):
            place[m, r] += base
    for m in range(M, len(first)):
        base, most = np.int32(first[m]), np.int32(sizes[m] - 1)
        for r in range(n):
            code = context[r, m - M]
            within = min(max(code, none), most)
            unknown += code != within
            place[m, r] = base + within
    return unknown


@product_kernel
def _search(inner: Array, m: int, s: Array, place: Array, n: int) -> None:
    """Count the knots that are not above each score, by halves."""
    for r in range(n):
        place[m, r] = 0
    half = np.int32(inner.shape[1] // 2)
    while half > 0:
        for r in range(n):
            up = inner[m, np.uint32(place[m, r] + half - np.int32(1))] <= s[m, r]
            place[m, r] += half if up else np.int32(0)
        half //= np.int32(2)
