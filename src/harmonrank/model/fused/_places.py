"""Places: which rows of the tables a score's bucket and a context's code stand for."""

__all__ = ["MOST_CODES", "check_shapes", "code_rows", "place_rows", "place_scores", "unknown_code"]

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from harmonrank.errors import UsageError
from harmonrank.kernel import kernel, parallel_kernel

MOST_CODES = 1 << 16
_PIECE = 1 << 18


def code_rows(
    scores: NDArray[np.float32], context: NDArray[np.int32], sizes: NDArray[np.int64]
) -> NDArray[np.uint16]:
    """Return (rows, objectives + features): clip(⌊s·B⌋, 0, B−1), then the context's codes.

    >>> code_rows(np.float32([[0.5, 1.0]]), np.int32([[7]]), sizes=np.array([10, 10, 8]))
    array([[5, 9, 7]], dtype=uint16)
    """
    rows, M = scores.shape
    features, B = len(sizes) - M, sizes[0]
    codes = np.empty((rows, len(sizes)), np.uint16)
    # In pieces, so that the intermediate integers take little memory.
    for start in range(0, rows, _PIECE):
        piece = slice(start, start + _PIECE)
        bucket = (scores[piece] * np.float32(B)).astype(np.int64)
        codes[piece, :M] = np.clip(bucket, 0, B - 1)
        given = context[piece, :features]
        if ((given < 0) | (given >= sizes[M:])).any():
            raise unknown_code()
        codes[piece, M:] = given
    return codes


def check_shapes(scores: NDArray[np.float32], context: NDArray[np.int32], M: int, C: int) -> None:
    """Refuse arrays that a kernel would read beyond their end."""
    if scores.ndim != 2 or scores.shape[1] != M:
        raise UsageError(f"`scores` must be (rows, {M}). Got {scores.shape}.")
    if context.ndim != 2 or len(context) != len(scores) or context.shape[1] < C:
        raise UsageError(f"`context` must be ({len(scores)}, {C}). Got {context.shape}.")


def unknown_code() -> UsageError:
    """Return what to say about a context code that the tables do not have."""
    return UsageError("`context` holds a code that training did not have; use 0, the unknown.")


@kernel
def place_rows(codes: Any, index: Any, first: Any, place: Any) -> int:
    """Write the places of some rows of coded data, in blocks of (columns, block)."""
    R, last = place.shape[2], codes.shape[1] - 1
    # The rows lie all over memory. Nothing waits for what this loop reads, so many are fetched at
    # once; unsigned positions spare every access a test for negative ones.
    touched = np.uint16(0)
    for i in range(len(index)):
        touched ^= codes[np.uint64(index[i]), last]
    for k in range(len(place)):
        start = k * R
        n = min(R, len(index) - start)
        for m in range(last + 1):
            base = np.int32(first[m])
            for r in range(n):
                place[k, m, r] = base + np.int32(codes[np.uint64(index[start + r]), m])
    # Returned, so that the compiler does not drop the loop that no one else needs.
    return int(touched)


@parallel_kernel
def place_parts(codes: Any, index: Any, first: Any, edges: Any, place: Any) -> None:
    """Do the same with all threads; a part is the blocks between two edges."""
    R = place.shape[2]
    for part in numba.prange(len(edges) - 1):
        low, high = edges[part], edges[part + 1]
        place_rows(codes, index[low * R : high * R], first, place[low:high])


@kernel
def place_scores(scores: Any, codes: Any, first: Any, sizes: Any, place: Any) -> int:
    """Write the places of raw scores and codes; return how many codes have none."""
    M, B, R, unknown = scores.shape[1], np.float32(sizes[0]), place.shape[2], 0
    for i in range(len(scores)):
        k, r = i // R, i % R
        for m in range(M):
            bucket = np.int64(scores[i, m] * B)
            place[k, m, r] = first[m] + min(max(bucket, 0), sizes[m] - 1)
        for m in range(M, len(first)):
            code = codes[i, m - M]
            within = min(max(code, 0), sizes[m] - 1)
            unknown += code != within
            place[k, m, r] = first[m] + within
    return unknown
