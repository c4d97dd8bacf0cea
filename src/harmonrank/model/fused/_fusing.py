"""The fused scores of a block: eq. 4 and eq. 5 of docs/kernels.md, in the same letters."""

__all__ = ["fuse_block"]

from typing import Any

import numpy as np

from harmonrank.kernel import product_kernel
from harmonrank.model.fused._softmax import ONE, ZERO, exp, softmax


@product_kernel
def _attend(b: Any, d: int, n: int) -> None:
    """A_ij ∝ exp(y_i · x_j), eq. 1 of docs/kernels.md. The width is even: two terms at a time."""
    cell, A = b.cell, b.A
    for i in range(len(A)):
        for j in range(len(A)):
            for r in range(n):
                A[i, j, r] = cell[i, d, r] * cell[j, 0, r] + cell[i, d + 1, r] * cell[j, 1, r]
            for c in range(2, d, 2):
                for r in range(n):
                    A[i, j, r] += (
                        cell[i, d + c, r] * cell[j, c, r]
                        + cell[i, d + c + 1, r] * cell[j, c + 1, r]
                    )
        softmax(A, i, n, b.inverse, b.spare)


@product_kernel
def _listen_to_itself(b: Any, n: int) -> None:
    """A = 1, when there is no self-attention."""
    for i in range(len(b.A)):
        for j in range(len(b.A)):
            share = ONE if i == j else ZERO
            for r in range(n):
                b.A[i, j, r] = share
        for r in range(n):
            b.inverse[i, r] = ONE


@product_kernel
def _ask(b: Any, d: int, n: int) -> None:
    """h_j = u · x_j; zero if the context does not ask (d = 0)."""
    u, cell, h = b.u, b.cell, b.h
    for j in range(len(h)):
        for r in range(n):
            h[j, r] = ZERO
        for c in range(0, d, 2):
            for r in range(n):
                h[j, r] += u[c, r] * cell[j, c, r] + u[c + 1, r] * cell[j, c + 1, r]


@product_kernel
def _hear(b: Any, i: int, z: int, n: int) -> None:
    """c_i = Σ_j A_ij h_j and o_i = Σ_j A_ij z_j."""
    A, c, o, h, cell, inverse = b.A, b.c, b.o, b.h, b.cell, b.inverse
    for r in range(n):
        c[i, r] = ZERO
        o[i, r] = ZERO
    for j in range(len(A)):
        for r in range(n):
            c[i, r] += A[i, j, r] * h[j, r]
            o[i, r] += A[i, j, r] * cell[j, z, r]
    for r in range(n):
        c[i, r] *= inverse[i, r]
        o[i, r] *= inverse[i, r]


@product_kernel
def _shares(b: Any, ask: bool, n: int) -> None:
    """Set p = softmax(c); without cross-attention every voice counts in full."""
    c, p, total = b.c, b.p, b.dh
    for i in range(len(c)):
        for r in range(n):
            p[0, i, r] = ONE
    if not ask:
        return
    for i in range(len(c)):
        for r in range(n):
            p[0, i, r] = c[i, r]
    softmax(p, 0, n, total, b.spare)
    for i in range(len(c)):
        for r in range(n):
            p[0, i, r] *= total[0, r]


@product_kernel
def _open_gates(b: Any, n: int) -> None:
    """Set g = σ(q) and replace t by l = g κ + t."""
    cell, g, e = b.cell, b.g, b.spare
    q, kept, last = cell.shape[1] - 3, cell.shape[1] - 2, cell.shape[1] - 1
    for m in range(len(cell)):
        for r in range(n):
            # e^−|q| cannot overflow: σ(q) is 1/(1 + e) on one side and e/(1 + e) on the other.
            e[0, r] = exp(-abs(cell[m, q, r]))
        for r in range(n):
            g[m, r] = np.divide(ONE if cell[m, q, r] >= ZERO else e[0, r], ONE + e[0, r])
        for r in range(n):
            cell[m, last, r] += g[m, r] * cell[m, kept, r]


@product_kernel
def fuse_block(b: Any, d: int, attend: bool, ask: bool, smooth: bool, bias: Any, n: int) -> None:
    """Fuse: s = bias + Σ_m l_m + s1 with s1 = Σ_i p_i o_i."""
    M, last, s, cell, p, o, u = len(b.A), b.cell.shape[1] - 1, b.s, b.cell, b.p, b.o, b.u
    if smooth:
        _open_gates(b, n)
    if attend:
        _attend(b, d, n)
    else:
        _listen_to_itself(b, n)
    _ask(b, d if ask else 0, n)
    for i in range(M):
        _hear(b, i, 2 * d if ask else 2 * d + i, n)
    _shares(b, ask, n)
    for r in range(n):
        s[0, r] = bias
        s[1, r] = ZERO
    if not ask:
        for r in range(n):
            s[0, r] += u[0, r]
    for i in range(M):
        for r in range(n):
            s[0, r] += cell[i, last, r]
            s[1, r] += p[0, i, r] * o[i, r]
    for r in range(n):
        s[0, r] += s[1, r]
