"""Codes: the bucket of every score and the code of every context, checked once."""

__all__ = ["MOST_CODES", "check_shapes", "code_rows", "unknown_code"]

import numpy as np
from numpy.typing import NDArray

from harmonrank.errors import UsageError

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
