"""The derivatives of sixteen fused scores, which the backward pass multiplies."""

__all__ = ["derive_rows"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.kernel import lane_function
from harmonrank.support.simd import ROWS, SINGLES, put_lanes, row_lanes
from harmonrank.support.simd_maths import of_all, transpose

Array = NDArray[Any]

_ZERO, _ONE = np.float32(0), np.float32(1)


@lane_function
def derive_rows(
    M: int, F: int, d: int, ask: bool, smooth: bool, cell: Array, u: Array, A: Array,
    own: Array, s: Array, D: Array, J: Array, start: int,
) -> None:  # fmt: skip
    """Write ∂s/∂(x, y, z, …) of every objective and ∂s/∂u into J, one row after the other.

    These are eqs. 9, 10 and 11 of docs/kernels.md; ∂s/∂A, eq. 7 of docs/kernels.md, is never kept.
    D has room for the same, the row being the last axis; each objective has a multiple of eight
    fields there. What is never written is the derivative of what is added as it is, 1, and of
    nothing, 0. Sums are kept in registers, each written once.
    """
    wide = -(-F // SINGLES) * SINGLES
    for i in range(M):  # p_i and one over the sum of A_i become ∂s/∂(A o)_i and ∂s/∂(A c)_i
        to_o = row_lanes(own, (3 * M + i) * ROWS) * row_lanes(own, (5 * M + i) * ROWS)
        to_c = to_o * (row_lanes(own, (2 * M + i) * ROWS) - row_lanes(s, ROWS))
        put_lanes(own, (3 * M + i) * ROWS, to_o)
        put_lanes(own, (5 * M + i) * ROWS, to_c if ask else of_all(_ZERO))
    for j in range(M):
        _derive_token(j, M, F, wide, d, ask, cell, A, own, D)
        if smooth:
            _derive_gate(j, M, F, wide, cell, own, D)
    for f in range(d):  # Without self-attention α is zero by itself.
        _derive_attention(f, M, F, wide, d, cell, A, D)
    if ask:
        _derive_question(M, F, wide, d, cell, u, own, D)
    width = len(D) // ROWS
    for k in range(0, width, SINGLES):
        for half in range(0, ROWS, SINGLES):
            first = (start + half) * width + k
            transpose(D, k * ROWS + half, ROWS, J, first, width)


@lane_function
def _derive_token(
    j: int, M: int, F: int, wide: int, d: int, ask: bool, cell: Array, A: Array, own: Array,
    D: Array,
) -> None:  # fmt: skip
    """Write ∂s/∂z_j and ∂s/∂h_j; A_ij becomes α_ij = ∂s/∂(y_i · x_j), eq. 8 of docs/kernels.md."""
    h, z = row_lanes(own, j * ROWS), 2 * d
    to_z, to_h = of_all(_ZERO), of_all(_ZERO)
    for i in range(M):
        a, c = row_lanes(A, (i * M + j) * ROWS), row_lanes(own, (M + i) * ROWS)
        to_o, to_c = row_lanes(own, (3 * M + i) * ROWS), row_lanes(own, (5 * M + i) * ROWS)
        if not ask:  # Each listener has a z of its own.
            z, to_z = 2 * d + i, of_all(_ZERO)
        to_z, to_h = to_z + to_o * a, to_h + to_c * a
        put_lanes(D, (j * wide + z) * ROWS, to_z)
        beside = row_lanes(cell, (j * F + z) * ROWS) - row_lanes(own, (2 * M + i) * ROWS)
        put_lanes(A, (i * M + j) * ROWS, a * (to_o * beside + to_c * (h - c)))
    put_lanes(own, (6 * M + j) * ROWS, to_h)


@lane_function
def _derive_gate(j: int, M: int, F: int, wide: int, cell: Array, own: Array, D: Array) -> None:
    """Write ∂s/∂q = κ g (1 − g) and ∂s/∂κ = g, eq. 6 of docs/kernels.md."""
    g, kept = row_lanes(own, (4 * M + j) * ROWS), row_lanes(cell, (j * F + F - 2) * ROWS)
    put_lanes(D, (j * wide + F - 3) * ROWS, kept * g * (of_all(_ONE) - g))
    put_lanes(D, (j * wide + F - 2) * ROWS, g)


@lane_function
def _derive_attention(
    f: int, M: int, F: int, wide: int, d: int, cell: Array, A: Array, D: Array
) -> None:
    """Write field f of ∂s/∂x_i = Σ_j α_ji y_j and of ∂s/∂y_i = Σ_j α_ij x_j."""
    for i in range(M):
        to_x, to_y = of_all(_ZERO), of_all(_ZERO)
        for j in range(M):
            y = row_lanes(cell, (j * F + d + f) * ROWS)
            to_x = to_x + row_lanes(A, (j * M + i) * ROWS) * y
            to_y = to_y + row_lanes(A, (i * M + j) * ROWS) * row_lanes(cell, (j * F + f) * ROWS)
        put_lanes(D, (i * wide + f) * ROWS, to_x)
        put_lanes(D, (i * wide + d + f) * ROWS, to_y)


@lane_function
def _derive_question(
    M: int, F: int, wide: int, d: int, cell: Array, u: Array, own: Array, D: Array
) -> None:
    """Add h_j's part, h_j = u · x_j, to ∂s/∂x_j, and write ∂s/∂u."""
    for f in range(d):
        to_u, asked = of_all(_ZERO), row_lanes(u, f * ROWS)
        for j in range(M):
            to_h, k = row_lanes(own, (6 * M + j) * ROWS), (j * wide + f) * ROWS
            put_lanes(D, k, row_lanes(D, k) + to_h * asked)
            to_u = to_u + to_h * row_lanes(cell, (j * F + f) * ROWS)
        put_lanes(D, (M * wide + f) * ROWS, to_u)
