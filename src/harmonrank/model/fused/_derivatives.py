"""The derivatives of a block's fused scores, which the backward pass multiplies."""

__all__ = ["derive_block"]

from typing import Any

from numpy.typing import NDArray

from harmonrank.kernel import product_kernel
from harmonrank.model.fused._softmax import ONE, ZERO

Array = NDArray[Any]


@product_kernel
def derive_block(
    b: Any, d: int, attend: bool, ask: bool, smooth: bool, n: int, J: Array, k: int
) -> None:
    """Write ∂s/∂(x, y, z) of every objective and ∂s/∂u into J[k]; A becomes ∂s/∂(y_i · x_j).

    These are eqs. 9, 10 and 11 of docs/kernels.md; ∂s/∂A, eq. 7 of docs/kernels.md, is never kept.
    """
    A, cell, u, h, c, o, p, dh = b.A, b.cell, b.u, b.h, b.c, b.o, b.p, b.dh
    s, inverse, spare = b.s, b.inverse, b.spare
    M, F = len(A), cell.shape[1] - 1
    for f in range(J.shape[1]):
        for r in range(n):
            J[k, f, r] = ZERO
    for j in range(M):
        for r in range(n):
            dh[j, r] = ZERO
    for i in range(M):
        z = 2 * d if ask else 2 * d + i
        for r in range(n):
            spare[0, r] = p[0, i, r] * inverse[i, r]  # ∂s/∂o_i
            spare[1, r] = ZERO  # ∂s/∂c_i
        if ask:
            for r in range(n):
                spare[1, r] = spare[0, r] * (o[i, r] - s[1, r])
        for j in range(M):
            for r in range(n):
                J[k, j * F + z, r] += spare[0, r] * A[i, j, r]
                dh[j, r] += spare[1, r] * A[i, j, r]
            if not attend:
                continue
            # α_ij, eq. 8 of docs/kernels.md
            for r in range(n):
                A[i, j, r] *= spare[0, r] * (cell[j, z, r] - o[i, r]) + spare[1, r] * (
                    h[j, r] - c[i, r]
                )
            for f in range(d):
                for r in range(n):
                    J[k, j * F + f, r] += A[i, j, r] * cell[i, d + f, r]
                    J[k, i * F + d + f, r] += A[i, j, r] * cell[j, f, r]
    if smooth:
        _derive_gates(b, n, J, k)
    if not ask:
        for r in range(n):
            J[k, M * F, r] = ONE
        return
    for j in range(M):
        for f in range(d):
            for r in range(n):
                J[k, j * F + f, r] += dh[j, r] * u[f, r]
                J[k, M * F + f, r] += dh[j, r] * cell[j, f, r]


@product_kernel
def _derive_gates(b: Any, n: int, J: Array, k: int) -> None:
    """Write ∂s/∂q = κ g (1 − g) and ∂s/∂κ = g, eq. 6 of docs/kernels.md."""
    cell, g, F = b.cell, b.g, b.cell.shape[1] - 1
    for m in range(len(cell)):
        for r in range(n):
            J[k, m * F + F - 2, r] = cell[m, F - 1, r] * g[m, r] * (ONE - g[m, r])
            J[k, m * F + F - 1, r] = g[m, r]
