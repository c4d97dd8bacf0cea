"""Coded rows: scores as buckets and context as codes, in two bytes each."""

__all__ = ["code_rows"]

import numpy as np
from numpy.typing import NDArray

_PIECE = 1 << 18


def code_rows(
    scores: NDArray[np.float32], context: NDArray[np.int32], buckets: int, features: int
) -> NDArray[np.uint16]:
    """Return (rows, objectives + features): clip(⌊s·B⌋, 0, B−1), then the context's codes.

    >>> code_rows(np.float32([[0.5, 1.0]]), np.int32([[7]]), buckets=10, features=1)
    array([[5, 9, 7]], dtype=uint16)
    """
    rows, M = scores.shape
    codes = np.empty((rows, M + features), np.uint16)
    for start in range(0, rows, _PIECE):
        piece = slice(start, start + _PIECE)
        bucket = (scores[piece] * np.float32(buckets)).astype(np.int64)
        codes[piece, :M] = np.clip(bucket, 0, buckets - 1)
    codes[:, M:] = context[:, :features]
    return codes
