"""The forward kernels: fused scores from tables, and each row's derivatives for the backward pass.

Rows go in blocks with the row as the last axis, so that every inner loop runs over neighbouring
floats and compiles to vector instructions whatever the number of objectives and the width. The
formulas are derived in docs/kernels.md; the letters are the same.
"""

__all__ = ["BLOCK", "fuse_parts"]

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import claim, finish, inline_kernel, product_kernel

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


class _Block(NamedTuple):
    """The numbers of some rows, the row being the last axis of each array."""

    cell: Array  # (objectives, fields): x, y, z of each score, then l, or q, κ and t
    u: Array  # (width,): what the context asks for
    A: Array  # (objectives, objectives): attention, times its sum
    inverse: Array  # (objectives,): one over that sum
    h: Array  # (objectives,): how much the context asks for a token
    c: Array  # (objectives,): how much it asks for what an objective hears, A h
    o: Array  # (objectives,): what an objective's voice adds to the score, A z
    p: Array  # (1, objectives): the voices' shares, softmax of c
    dh: Array  # (objectives,): ∂s/∂h
    g: Array  # (objectives,): the gate, where rows are mixed
    s: Array  # (2,): the fused score, and its relation-aware part
    spare: Array  # (2,): room for intermediate results


@inline_kernel
def _exp(x: Any) -> Any:
    """Return eˣ = 2ᵏ eᶠ for x ≤ 0 in float32, without a branch: k whole, |f| ≤ ln 2 / 2."""
    x = max(x, _LOWEST)
    k = (x * _LOG2E + _ROUND) - _ROUND
    f = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _ONE + f * (_ONE + f * (_E2 + f * (_E3 + f * (_E4 + f * (_E5 + f * _E6)))))
    return p * np.int32((np.int32(k) + _EXPONENT_BIAS) << _EXPONENT_SHIFT).view(np.float32)


@product_kernel
def _new_block(M: int, F: int, W: int, R: int) -> Any:
    def new(n: int) -> Any:
        return np.empty((n, R), np.float32)

    A, cell = np.empty((M, M, R), np.float32), np.empty((M, F, R), np.float32)
    p = np.empty((1, M, R), np.float32)
    own = new(M), new(M), new(M), new(M), p, new(M), new(M)
    return _Block(cell, new(W), A, *own, new(2), new(2))


@product_kernel
def _softmax(a: Array, i: int, n: int, inverse: Array, top: Array) -> None:
    """Turn a[i], (objectives, rows), into eᵃ up to a factor; inverse[i] is one over their sum."""
    M = a.shape[1]
    for r in range(n):
        top[0, r] = a[i, 0, r]
        inverse[i, r] = _ZERO
    for j in range(1, M):
        # From one row to the other, as a maximum in place would become a slow conditional store.
        here, there = (j - 1) % 2, j % 2
        for r in range(n):
            top[there, r] = max(top[here, r], a[i, j, r])
    last = (M - 1) % 2
    for j in range(M):
        for r in range(n):
            e = _exp(a[i, j, r] - top[last, r])
            a[i, j, r] = e
            inverse[i, r] += e
    for r in range(n):
        # np.divide, as `/` would test for zero and keep the loop from being vectorised.
        inverse[i, r] = np.divide(_ONE, inverse[i, r])


@product_kernel
def _attend(b: Any, d: int, n: int) -> None:
    """A_ij ∝ exp(y_i · x_j). The width is even, so two terms go at a time."""
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
        _softmax(A, i, n, b.inverse, b.spare)


@product_kernel
def _listen_to_itself(b: Any, n: int) -> None:
    """A = 1, when there is no self-attention."""
    for i in range(len(b.A)):
        for j in range(len(b.A)):
            share = _ONE if i == j else _ZERO
            for r in range(n):
                b.A[i, j, r] = share
        for r in range(n):
            b.inverse[i, r] = _ONE


@product_kernel
def _ask(b: Any, d: int, n: int) -> None:
    """h_j = u · x_j; zero if the context does not ask (d = 0)."""
    u, cell, h = b.u, b.cell, b.h
    for j in range(len(h)):
        for r in range(n):
            h[j, r] = _ZERO
        for c in range(0, d, 2):
            for r in range(n):
                h[j, r] += u[c, r] * cell[j, c, r] + u[c + 1, r] * cell[j, c + 1, r]


@product_kernel
def _hear(b: Any, i: int, z: int, n: int) -> None:
    """c_i = Σ_j A_ij h_j and o_i = Σ_j A_ij z_j."""
    A, c, o, h, cell, inverse = b.A, b.c, b.o, b.h, b.cell, b.inverse
    for r in range(n):
        c[i, r] = _ZERO
        o[i, r] = _ZERO
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
            p[0, i, r] = _ONE
    if not ask:
        return
    for i in range(len(c)):
        for r in range(n):
            p[0, i, r] = c[i, r]
    _softmax(p, 0, n, total, b.spare)
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
            e[0, r] = _exp(-abs(cell[m, q, r]))
        for r in range(n):
            g[m, r] = np.divide(_ONE if cell[m, q, r] >= _ZERO else e[0, r], _ONE + e[0, r])
        for r in range(n):
            cell[m, last, r] += g[m, r] * cell[m, kept, r]


@product_kernel
def _fuse_block(b: Any, d: int, attend: bool, ask: bool, smooth: bool, bias: Any, n: int) -> None:
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
        s[1, r] = _ZERO
    if not ask:
        for r in range(n):
            s[0, r] += u[0, r]
    for i in range(M):
        for r in range(n):
            s[0, r] += cell[i, last, r]
            s[1, r] += p[0, i, r] * o[i, r]
    for r in range(n):
        s[0, r] += s[1, r]


@product_kernel
def _derive_block(
    b: Any, d: int, attend: bool, ask: bool, smooth: bool, n: int, J: Array, k: int
) -> None:
    """Write ∂s/∂(x, y, z) of every objective and ∂s/∂u into J[k]; A becomes ∂s/∂(y_i · x_j)."""
    A, cell, u, h, c, o, p, dh = b.A, b.cell, b.u, b.h, b.c, b.o, b.p, b.dh
    s, inverse, spare = b.s, b.inverse, b.spare
    M, F = len(A), cell.shape[1] - 1
    for f in range(J.shape[1]):
        for r in range(n):
            J[k, f, r] = _ZERO
    for j in range(M):
        for r in range(n):
            dh[j, r] = _ZERO
    for i in range(M):
        z = 2 * d if ask else 2 * d + i
        for r in range(n):
            spare[0, r] = p[0, i, r] * inverse[i, r]  # ∂s/∂o_i
            spare[1, r] = _ZERO  # ∂s/∂c_i
        if ask:
            for r in range(n):
                spare[1, r] = spare[0, r] * (o[i, r] - s[1, r])
        for j in range(M):
            for r in range(n):
                J[k, j * F + z, r] += spare[0, r] * A[i, j, r]
                dh[j, r] += spare[1, r] * A[i, j, r]
            if not attend:
                continue
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
            J[k, M * F, r] = _ONE
        return
    for j in range(M):
        for f in range(d):
            for r in range(n):
                J[k, j * F + f, r] += dh[j, r] * u[f, r]
                J[k, M * F + f, r] += dh[j, r] * cell[j, f, r]


@product_kernel
def _derive_gates(b: Any, n: int, J: Array, k: int) -> None:
    """Write ∂s/∂q = κ g (1 − g) and ∂s/∂κ = g."""
    cell, g, F = b.cell, b.g, b.cell.shape[1] - 1
    for m in range(len(cell)):
        for r in range(n):
            J[k, m * F + F - 2, r] = cell[m, F - 1, r] * g[m, r] * (_ONE - g[m, r])
            J[k, m * F + F - 1, r] = g[m, r]


@product_kernel
def _load_block(
    b: Any, cells: Array, contexts: Array, place: Array, share: Array, smooth: bool, k: int, n: int
) -> None:
    """Fetch the table rows of a block; u is the constant row plus one row per context feature."""
    M, cell, u = len(b.A), b.cell, b.u
    # Unsigned positions spare every access a test for negative ones.
    for m in range(M):
        for f in range(cells.shape[1]):
            for r in range(n):
                cell[m, f, r] = cells[np.uint32(place[k, m, r]), f]
            if smooth:
                for r in range(n):
                    after = cells[np.uint32(place[k, m, r]) + np.uint32(1), f]
                    cell[m, f, r] += share[k, m, r] * (after - cell[m, f, r])
    for c in range(contexts.shape[1]):
        for r in range(n):
            u[c, r] = contexts[0, c]
        for m in range(M, place.shape[1]):
            for r in range(n):
                u[c, r] += contexts[np.uint32(place[k, m, r]), c]


@product_kernel
def _touch(codes: Array, shares: Array, index: Array, smooth: bool) -> float:
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
def _place_codes(
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
def _place_scores(
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
                share[m, r] = min(max(part, _ZERO), _ONE)
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


@product_kernel
def fuse_parts(
    claims: Array, who: int, edges: Array, index: Array, codes: Array, shares: Array,
    scores: Array, context: Array, first: Array, sizes: Array, knots: Array, inner: Array,
    cells: Array, contexts: Array, M: int, d: int, attend: bool, ask: bool, smooth: bool,
    bias: Any, derive: bool, place: Array, share: Array, J: Array, s: Array, unknown: Array,
) -> None:  # fmt: skip
    """Fuse rows part by part, as long as there are parts that no other thread has claimed.

    A part is the blocks between two edges. To train (`derive`), rows are given as `codes[index]`
    and `shares[index]`, and their places, shares and derivatives are kept: (blocks, objectives +
    features, BLOCK), (blocks, objectives, BLOCK) and (blocks, derivatives, BLOCK). To score, they
    are given as scores and context codes, and unknown[part] is how many of its codes the tables do
    not have. One kernel serves both, as it is the one that takes long to compile.

    All results of a part are written before it counts as finished: the caller may go on as soon
    as all parts are, and before this function returns.
    """
    R = BLOCK
    b = _new_block(M, cells.shape[1], contexts.shape[1], R)
    here, part_of = np.empty((1, len(first), R), np.int32), np.empty((1, M, R), np.float32)
    while True:
        part = claim(claims, who, len(edges) - 1)
        if part >= len(edges) - 1:
            return
        low, high = edges[part], edges[part + 1]
        strange = 0
        if derive:
            _touch(codes, shares, index[low * R : high * R], smooth)
        for k in range(low, high):
            start = k * R
            n = min(R, len(s) - start)
            if derive:
                rows = index[start : start + n]
                _place_codes(codes, shares, rows, first, smooth, place, share, k, n)
                _load_block(b, cells, contexts, place, share, smooth, k, n)
            else:
                strange += _place_scores(
                    scores[start : start + n], context[start : start + n], first, sizes, knots,
                    inner, smooth, here[0], part_of[0], n,
                )  # fmt: skip
                _load_block(b, cells, contexts, here, part_of, smooth, 0, n)
            _fuse_block(b, d, attend, ask, smooth, bias, n)
            if derive:
                _derive_block(b, d, attend, ask, smooth, n, J, k)
            for r in range(n):
                s[start + r] = b.s[0, r]
        if not derive:
            unknown[part] = strange
        finish(claims)
