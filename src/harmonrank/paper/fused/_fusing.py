"""The fused scores of sixteen rows: eq. 4 and eq. 5 of docs/kernels.md, in the same letters."""

__all__ = ["fuse_rows"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.kernel import lane_function
from harmonrank.support.simd import ROWS, put_lanes, row_lanes
from harmonrank.support.simd_maths import exponential, larger, of_all, sigmoid

Array = NDArray[Any]

_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(-np.inf)


@lane_function
def fuse_rows(
    M: int, F: int, d: int, attend: bool, ask: bool, smooth: bool, bias: Any, cell: Array, u: Array,
    A: Array, own: Array, s: Array,
) -> None:  # fmt: skip
    """Fuse: s = bias + Σ_m l_m + s1 with s1 = Σ_i p_i o_i."""
    total = of_all(bias)
    if not ask:
        total = total + row_lanes(u, 0)
    for m in range(M):
        last = (m * F + F - 1) * ROWS
        if smooth:  # l = g κ + t with the gate g = σ(q)
            g = sigmoid(row_lanes(cell, last - 2 * ROWS))
            put_lanes(own, (4 * M + m) * ROWS, g)
            total = total + g * row_lanes(cell, last - ROWS)
        total = total + row_lanes(cell, last)
        h = of_all(_ZERO)  # h_m = u · x_m; zero if the context does not ask
        if ask:
            for f in range(d):
                h = h + row_lanes(u, f * ROWS) * row_lanes(cell, (m * F + f) * ROWS)
        put_lanes(own, m * ROWS, h)
    for i in range(M):
        _hear(i, 2 * d if ask else 2 * d + i, M, F, d, attend, cell, A, own)
    voices = _voices(M, ask, own)
    put_lanes(s, 0, total + voices)
    put_lanes(s, ROWS, voices)


@lane_function
def _hear(
    i: int, z: int, M: int, F: int, d: int, attend: bool, cell: Array, A: Array, own: Array
) -> None:
    """c_i = Σ_j A_ij h_j and o_i = Σ_j A_ij z_j, A being eq. 1 of docs/kernels.md."""
    top = of_all(_LEAST)
    for j in range(M if attend else 0):
        a = of_all(_ZERO)
        for f in range(d):
            a = a + row_lanes(cell, (i * F + d + f) * ROWS) * row_lanes(cell, (j * F + f) * ROWS)
        put_lanes(A, (i * M + j) * ROWS, a)
        top = larger(a, top)
    total, c, o = of_all(_ZERO), of_all(_ZERO), of_all(_ZERO)
    for j in range(M):
        # Without self-attention an objective listens to itself alone.
        e = of_all(_ONE if i == j else _ZERO)
        if attend:
            e = exponential(row_lanes(A, (i * M + j) * ROWS) - top)
        put_lanes(A, (i * M + j) * ROWS, e)
        total = total + e
        c = c + e * row_lanes(own, j * ROWS)
        o = o + e * row_lanes(cell, (j * F + z) * ROWS)
    inverse = of_all(_ONE) / total
    put_lanes(own, (M + i) * ROWS, c * inverse)
    put_lanes(own, (2 * M + i) * ROWS, o * inverse)
    put_lanes(own, (5 * M + i) * ROWS, inverse)


@lane_function
def _voices(M: int, ask: bool, own: Array) -> Any:
    """Return Σ_i p_i o_i with p = softmax(c); without cross-attention all voices count in full."""
    top, total, voices = of_all(_LEAST), of_all(_ZERO), of_all(_ZERO)
    for i in range(M):
        top = larger(row_lanes(own, (M + i) * ROWS), top)
    for i in range(M):
        p = exponential(row_lanes(own, (M + i) * ROWS) - top) if ask else of_all(_ONE)
        put_lanes(own, (3 * M + i) * ROWS, p)
        total = total + p
        voices = voices + p * row_lanes(own, (2 * M + i) * ROWS)
    if not ask:
        return voices
    inverse = of_all(_ONE) / total
    for i in range(M):
        put_lanes(own, (3 * M + i) * ROWS, row_lanes(own, (3 * M + i) * ROWS) * inverse)
    return voices * inverse
