"""The forward kernels: fused scores from tables, and each row's derivatives for the backward pass.

Rows go in blocks with the row as the last axis, so that every inner loop runs over neighbouring
floats and compiles to vector instructions whatever the number of objectives and the width. The
formulas are derived in docs/kernels.md; the letters are the same.
"""

__all__ = ["BLOCK", "fuse_rows", "fuse_scores"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import inline_kernel, kernel

Array = NDArray[Any]

BLOCK = 128  # At five objectives and width 2 the buffers of a block stay in the nearest caches.

_LOWEST, _LOG2E = np.float32(-87.0), np.float32(1.4426950408889634)
# ln 2 in two parts: the first has few digits, so that k times it is exact.
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROUND = np.float32(12582912.0)  # 1.5 · 2²³: adding it rounds a small float to a whole number.
# The polynomial of least relative error, 3e-9, on |f| ≤ ln 2 / 2 that begins with 1 + f.
_E2, _E3 = np.float32(0.499999934), np.float32(0.166665206)
_E4, _E5, _E6 = np.float32(0.041668388), np.float32(0.00836871703), np.float32(0.00138146019)
_ZERO, _ONE = np.float32(0), np.float32(1)
_EXPONENT_BIAS, _EXPONENT_SHIFT = np.int32(127), np.int32(23)


@inline_kernel
def _exp(x: Any) -> Any:
    """Return eˣ = 2ᵏ eᶠ for x ≤ 0 in float32, without a branch: k whole, |f| ≤ ln 2 / 2."""
    x = max(x, _LOWEST)
    k = (x * _LOG2E + _ROUND) - _ROUND
    f = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _ONE + f * (_ONE + f * (_E2 + f * (_E3 + f * (_E4 + f * (_E5 + f * _E6)))))
    return p * np.int32((np.int32(k) + _EXPONENT_BIAS) << _EXPONENT_SHIFT).view(np.float32)


@kernel
def _softmax(a: Array, i: int, n: int, work: Array) -> None:
    """Turn a[i], of (objectives, rows), into its softmax over the objectives, in place."""
    M = a.shape[1]
    for r in range(n):
        work[0, r] = a[i, 0, r]
        work[1, r] = _ZERO
    for j in range(1, M):
        for r in range(n):
            work[0, r] = max(work[0, r], a[i, j, r])
    for j in range(M):
        for r in range(n):
            e = _exp(a[i, j, r] - work[0, r])
            a[i, j, r] = e
            work[1, r] += e
    for r in range(n):
        # np.divide, as `/` would test for zero and keep the loop from being vectorised.
        work[1, r] = np.divide(_ONE, work[1, r])
    for j in range(M):
        for r in range(n):
            a[i, j, r] *= work[1, r]


@kernel
def _attend(cell: Array, d: int, n: int, A: Array, work: Array) -> None:
    """A_ij = softmax_j(y_i · x_j). The width is even, so two terms go at a time."""
    M = len(A)
    for i in range(M):
        for j in range(M):
            A[i, j, :n] = _ZERO
            for c in range(0, d, 2):
                for r in range(n):
                    A[i, j, r] += (
                        cell[i, d + c, r] * cell[j, c, r]
                        + cell[i, d + c + 1, r] * cell[j, c + 1, r]
                    )
        _softmax(A, i, n, work)


@kernel
def _listen_to_itself(A: Array, n: int) -> None:
    """A = 1, when there is no self-attention."""
    for i in range(len(A)):
        A[i, :, :n] = _ZERO
        A[i, i, :n] = _ONE


@kernel
def _ask(cell: Array, u: Array, d: int, n: int, A: Array, h: Array, p: Array, work: Array) -> None:
    """h_j = u · x_j, then p = softmax(A h), keeping c = A h in p[1]."""
    M = len(A)
    for j in range(M):
        h[j, :n] = _ZERO
        for c in range(0, d, 2):
            for r in range(n):
                h[j, r] += u[c, r] * cell[j, c, r] + u[c + 1, r] * cell[j, c + 1, r]
    for i in range(M):
        p[0, i, :n] = _ZERO
        for j in range(M):
            for r in range(n):
                p[0, i, r] += A[i, j, r] * h[j, r]
        p[1, i, :n] = p[0, i, :n]
    _softmax(p, 0, n, work)


@kernel
def _fuse_block(
    cell: Array, u: Array, d: int, attend: bool, ask: bool, bias: Any, n: int,
    A: Array, h: Array, p: Array, o: Array, work: Array, s: Array,
) -> None:  # fmt: skip
    """Fuse: s = bias + Σ_m l_m + s1, s1 = Σ_i p_i o_i (kept in work[2]), o_i = Σ_j A_ij z_ij."""
    M, last = len(A), cell.shape[1] - 1
    if attend:
        _attend(cell, d, n, A, work)
    else:
        _listen_to_itself(A, n)
    if ask:
        _ask(cell, u, d, n, A, h, p, work)
        s[:n] = bias
    else:
        h[:, :n] = _ZERO
        p[0, :, :n], p[1, :, :n] = _ONE, _ZERO
        for r in range(n):
            s[r] = bias + u[0, r]
    work[2, :n] = _ZERO
    for i in range(M):
        z = 2 * d if ask else 2 * d + i
        o[i, :n] = _ZERO
        for j in range(M):
            for r in range(n):
                o[i, r] += A[i, j, r] * cell[j, z, r]
        for r in range(n):
            work[2, r] += p[0, i, r] * o[i, r]
            s[r] += cell[i, last, r]
    for r in range(n):
        s[r] += work[2, r]


@kernel
def _derive_block(
    cell: Array, u: Array, d: int, attend: bool, ask: bool, n: int,
    A: Array, h: Array, p: Array, o: Array, dh: Array, work: Array, J: Array, k: int,
) -> None:  # fmt: skip
    """Write ∂s/∂(x, y, z) of every objective and ∂s/∂u into J[k]; A becomes ∂s/∂(y_i · x_j)."""
    M, F = len(A), cell.shape[1] - 1
    J[k, :, :n], dh[:, :n], work[0, :n] = _ZERO, _ZERO, _ZERO
    for i in range(M):
        z = 2 * d if ask else 2 * d + i
        if ask:
            for r in range(n):
                work[0, r] = p[0, i, r] * (o[i, r] - work[2, r])  # γ_i = ∂s/∂c_i
        for j in range(M):
            for r in range(n):
                dh[j, r] += work[0, r] * A[i, j, r]
                J[k, j * F + z, r] += p[0, i, r] * A[i, j, r]
            if not attend:
                continue
            for r in range(n):
                A[i, j, r] *= work[0, r] * (h[j, r] - p[1, i, r]) + p[0, i, r] * (
                    cell[j, z, r] - o[i, r]
                )
            for c in range(d):
                for r in range(n):
                    J[k, j * F + c, r] += A[i, j, r] * cell[i, d + c, r]
                    J[k, i * F + d + c, r] += A[i, j, r] * cell[j, c, r]
    if not ask:
        J[k, M * F, :n] = _ONE
        return
    for j in range(M):
        for c in range(d):
            for r in range(n):
                J[k, j * F + c, r] += dh[j, r] * u[c, r]
                J[k, M * F + c, r] += dh[j, r] * cell[j, c, r]


@kernel
def _load_block(
    table: Array, context: Array, place: Array, k: int, M: int, n: int, cell: Array, u: Array
) -> None:
    """Fetch the table rows of a block; u is the constant row plus one row per context feature."""
    for m in range(M):
        for r in range(n):
            row = place[k, m, r]
            for f in range(table.shape[1]):
                cell[m, f, r] = table[row, f]
    for c in range(context.shape[1]):
        u[c, :n] = context[0, c]
    for m in range(M, place.shape[1]):
        for r in range(n):
            row = place[k, m, r]
            for c in range(context.shape[1]):
                u[c, r] += context[row, c]


@kernel
def fuse_rows(
    codes: Array, index: Array, first: Array, table: Array, context: Array, M: int, d: int,
    attend: bool, ask: bool, bias: Any, place: Array, J: Array, s: Array,
) -> None:  # fmt: skip
    """Fuse the rows `index` of coded data; keep their places in the tables and derivatives.

    `place` and `J` are in blocks: (blocks, objectives + features, BLOCK) and
    (blocks, derivatives, BLOCK).
    """
    R, F, W = place.shape[2], table.shape[1], context.shape[1]
    cell, u = np.empty((M, F, R), np.float32), np.empty((W, R), np.float32)
    A, p = np.empty((M, M, R), np.float32), np.empty((2, M, R), np.float32)
    h, o, dh = np.empty((3, M, R), np.float32)
    work, fused = np.empty((3, R), np.float32), np.empty(R, np.float32)
    for k in range(len(place)):
        start = k * R
        n = min(R, len(index) - start)
        for r in range(n):
            row = index[start + r]
            for m in range(codes.shape[1]):
                place[k, m, r] = first[m] + codes[row, m]
        _load_block(table, context, place, k, M, n, cell, u)
        _fuse_block(cell, u, d, attend, ask, bias, n, A, h, p, o, work, fused)
        _derive_block(cell, u, d, attend, ask, n, A, h, p, o, dh, work, J, k)
        s[start : start + n] = fused[:n]


@kernel
def fuse_scores(
    scores: Array, codes: Array, buckets: int, first: Array, table: Array, context: Array, d: int,
    attend: bool, ask: bool, bias: Any, s: Array,
) -> None:  # fmt: skip
    """Fuse raw scores and context codes, without derivatives."""
    M, R, F, W = scores.shape[1], BLOCK, table.shape[1], context.shape[1]
    cell, u = np.empty((M, F, R), np.float32), np.empty((W, R), np.float32)
    A, p = np.empty((M, M, R), np.float32), np.empty((2, M, R), np.float32)
    h, o = np.empty((2, M, R), np.float32)
    work, fused = np.empty((3, R), np.float32), np.empty(R, np.float32)
    place = np.empty((1, len(first), R), np.int32)
    B = np.float32(buckets)
    for start in range(0, len(scores), R):
        n = min(R, len(scores) - start)
        for r in range(n):
            for m in range(M):
                bucket = np.int64(scores[start + r, m] * B)
                place[0, m, r] = first[m] + min(max(bucket, 0), buckets - 1)
            for f in range(M, len(first)):
                place[0, f, r] = first[f] + codes[start + r, f - M]
        _load_block(table, context, place, 0, M, n, cell, u)
        _fuse_block(cell, u, d, attend, ask, bias, n, A, h, p, o, work, fused)
        for r in range(n):
            s[start + r] = fused[r]
