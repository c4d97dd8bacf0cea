"""The loops of the residual's fit: gradient of one head, a first look at all groups, curvature.

Rows come in the order of their contexts. All that depends on the context is the same for a run of
rows, so in the gradient of one head values, slopes and pairs are looked up once per run, and what
they cost does not grow with their number where contexts have many rows. The first look takes a
tile of rows through all groups that a head may have, so that the sums of a group stay in a near
cache: of twenty objectives there are hundreds of groups, whose sums together take megabytes.
"""

__all__ = ["BAND", "add_blocks", "add_curvature", "add_gradient", "add_look"]

from typing import Any

import numpy as np

from harmonrank.model.scorer.elementary import take_logarithms, take_sigmoids
from harmonrank.model.terms.residual import SURFACE_KNOTS
from harmonrank.model.terms.residual_kernels import (
    CURVE,
    PAIR,
    SLOPE,
    SURFACE,
    TILE,
    TOUCHED,
    find_cells,
    touch,
)
from harmonrank.support.kernel import inline_kernel, kernel, simd_function, simd_kernel

BAND = (0, 1, SURFACE_KNOTS - 1, SURFACE_KNOTS, SURFACE_KNOTS + 1)
"""How far apart the coefficients are that some row touches together; a row of them is kept."""

_CELLS = SURFACE_KNOTS - 1
_TERMS = 4  # Of a bilinear surface within a cell: 1, y, x and xy.
# The place in `BAND` of two coefficients that a row touches, the later one first.
_APART = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [3, 2, 0, 0], [4, 3, 1, 0]])


@simd_kernel
def _weigh_labels(n: int, z: Any, labels: Any, weight: Any, p: Any, sure: Any, g: Any) -> float:
    """Write weight·(y − σ(z)) of the n first rows of a tile; return the sum of log-likelihoods.

    With s = sign z, log σ(z) is min(z, 0) + log σ(|z|), and log(1 − σ(z)) is z less.
    """
    for r in range(TILE):
        p[r], sure[r] = z[r], abs(z[r])
    take_sigmoids(p)
    take_sigmoids(sure)
    take_logarithms(sure)
    value = 0.0
    for r in range(n):
        g[r] = weight[r] * (labels[r] - p[r])
        value += weight[r] * (labels[r] * z[r] - max(z[r], 0.0) + sure[r])
    return value


@inline_kernel
def _end_of_run(context: Any, first: int, r: int, n: int) -> int:
    """Return where the rows of a tile that have the context of row r end."""
    end = r + 1
    while end < n and context[first + end] == context[first + r]:
        end += 1
    return end


@kernel
def add_gradient(
    m: int, begin: int, end: int, labels: Any, weight: Any, rows: Any, groups: Any, cells: Any,
    theta: Any, out: Any, gradient: Any,
) -> float:  # fmt: skip
    """Write the logit of every row, add the gradient; return the log-likelihood.

    Letters are those of `harmonrank.model.terms.residual`, of eq. 7 of docs/default-method.md.
    """
    table, kinds, heads, inputs = groups.table, groups.kinds, rows.heads, rows.inputs
    M, context, slope = heads.shape[1], rows.context, np.empty(heads.shape[1])
    z, g, p, sure = np.zeros(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    curves, surfaces = range(kinds[CURVE], kinds[SLOPE]), range(kinds[SURFACE], kinds[PAIR])
    inside = np.empty((len(surfaces), _CELLS * _CELLS * _TERMS))
    for t in surfaces:
        _put_polynomials(inside[t - kinds[SURFACE]], theta[table[t, 3] :])
    sums, value = np.zeros(inside.shape), 0.0
    for first in range(begin, end, TILE):
        n = min(TILE, end - first)
        r = 0
        while r < n:
            stop = _end_of_run(context, first, r, n)
            intercept = _affine(theta, rows, groups, first + r, slope)  # (a, b, d, f)
            for i in range(r, stop):
                head = np.float64(heads[first + i, m])
                total = head + intercept + theta[1] * head
                for j in range(M):
                    total += slope[j] * inputs[first + i, j]
                z[i] = total
            r = stop
        find_cells(rows, groups, np.arange(first, first + n), cells)
        for t in curves:  # (c)
            _add_curve(
                theta[table[t, 3] :], n, cells.cell[table[t, 2]], cells.share[table[t, 2]], z
            )
        for t in surfaces:  # (e)
            a, b = table[t, 1], table[t, 2]
            there = cells.wide[a], cells.wide[b], cells.part[a], cells.part[b]
            _add_surface(inside[t - kinds[SURFACE]], n, there, z)
        out[first : first + n] = z[:n]
        same = slice(first, first + n)
        value += _weigh_labels(n, z, labels[same], weight[same], p, sure, g)
        # The same coefficients once more, each with the number that z is linear in.
        r = 0
        while r < n:
            stop = _end_of_run(context, first, r, n)
            slope[:] = 0.0
            total, by_head = 0.0, 0.0
            for i in range(r, stop):
                total += g[i]
                by_head += g[i] * heads[first + i, m]
                for j in range(M):
                    slope[j] += g[i] * inputs[first + i, j]
            gradient[1] += by_head
            _add_affine(gradient, rows, groups, first + r, total, slope)
            r = stop
        for t in curves:
            cell, share = cells.cell[table[t, 2]], cells.share[table[t, 2]]
            _add_to_curve(gradient[table[t, 3] :], n, cell, share, g)
        for t in surfaces:
            a, b = table[t, 1], table[t, 2]
            there = cells.wide[a], cells.wide[b], cells.part[a], cells.part[b]
            _add_to_cells(sums[t - kinds[SURFACE]], n, there, g)
    for t in surfaces:
        _add_corners(gradient[table[t, 3] :], sums[t - kinds[SURFACE]])
    return value


@simd_kernel
def _add_curve(theta: Any, n: int, cell: Any, share: Any, z: Any) -> None:
    for r in range(n):
        z[r] += theta[cell[r]] + share[r] * (theta[cell[r] + 1] - theta[cell[r]])


@simd_kernel
def _add_to_curve(gradient: Any, n: int, cell: Any, share: Any, g: Any) -> None:
    for r in range(n):
        above = g[r] * share[r]
        gradient[cell[r]] += g[r] - above
        gradient[cell[r] + 1] += above


@kernel
def _put_polynomials(inside: Any, theta: Any) -> None:
    """Write each cell of a surface as a polynomial, whose terms 1, y, x and xy lie side by side."""
    for a in range(_CELLS):
        for b in range(_CELLS):
            k, to = a * SURFACE_KNOTS + b, (a * _CELLS + b) * _TERMS
            near, beside = theta[k], theta[k + 1] - theta[k]
            above = theta[k + SURFACE_KNOTS]
            inside[to], inside[to + 1], inside[to + 2] = near, beside, above - near
            inside[to + 3] = theta[k + SURFACE_KNOTS + 1] - above - beside


@simd_kernel
def _add_surface(inside: Any, n: int, there: Any, z: Any) -> None:
    row, column, x, y = there
    for r in range(n):
        k = (row[r] * _CELLS + column[r]) * _TERMS
        near = inside[k] + y[r] * inside[k + 1]
        z[r] += near + x[r] * (inside[k + 2] + y[r] * inside[k + 3])


@simd_kernel
def _add_to_cells(sums: Any, n: int, there: Any, g: Any) -> None:
    """Add the terms of each row to the sums of its cell."""
    row, column, x, y = there
    for r in range(n):
        k, one, over = (row[r] * _CELLS + column[r]) * _TERMS, g[r], g[r] * x[r]
        sums[k] += one
        sums[k + 1] += one * y[r]
        sums[k + 2] += over
        sums[k + 3] += over * y[r]


@kernel
def _add_corners(gradient: Any, sums: Any) -> None:
    """Turn Σ g, Σ g y, Σ g x and Σ g xy of each cell into the gradient of its four corners."""
    for a in range(_CELLS):
        for b in range(_CELLS):
            k, to = a * SURFACE_KNOTS + b, (a * _CELLS + b) * _TERMS
            one, y, x, xy = sums[to], sums[to + 1], sums[to + 2], sums[to + 3]
            gradient[k] += one - y - x + xy
            gradient[k + 1] += y - xy
            gradient[k + SURFACE_KNOTS] += x - xy
            gradient[k + SURFACE_KNOTS + 1] += xy


@kernel
def _affine(theta: Any, rows: Any, groups: Any, row: int, slope: Any) -> float:
    """Return the intercept of a row's context, and write what it multiplies the scores with."""
    table, kinds, code = groups.table, groups.kinds, rows.contexts[rows.context[row]]
    intercept = theta[0]
    for j in range(len(slope)):
        slope[j] = theta[2 + j]
    for t in range(kinds[CURVE]):
        intercept += theta[table[t, 3] + code[table[t, 1]]]
    for t in range(kinds[SLOPE], kinds[SURFACE]):
        slope[table[t, 1]] += theta[table[t, 3] + code[table[t, 2]]]
    for t in range(kinds[PAIR], len(table)):
        a, b = table[t, 1], table[t, 2]
        intercept += theta[table[t, 3] + code[a] * rows.slots[b] + code[b]]
    result: float = intercept
    return result


@kernel
def _add_affine(gradient: Any, rows: Any, groups: Any, row: int, total: float, slope: Any) -> None:
    """Add the gradient of a run of rows whose Σ g and Σ g u these are."""
    table, kinds, code = groups.table, groups.kinds, rows.contexts[rows.context[row]]
    gradient[0] += total
    for j in range(len(slope)):
        gradient[2 + j] += slope[j]
    for t in range(kinds[CURVE]):
        gradient[table[t, 3] + code[table[t, 1]]] += total
    for t in range(kinds[SLOPE], kinds[SURFACE]):
        gradient[table[t, 3] + code[table[t, 2]]] += slope[table[t, 1]]
    for t in range(kinds[PAIR], len(table)):
        a, b = table[t, 1], table[t, 2]
        gradient[table[t, 3] + code[a] * rows.slots[b] + code[b]] += total


@simd_kernel
def add_look(
    begin: int, end: int, labels: Any, weight: Any, period: Any, rows: Any, groups: Any,
    cells: Any, gradient: Any,
) -> None:  # fmt: skip
    """Add gradients of all heads at their linear logits, of each period.

    Heads are side by side, as all touch the same coefficients of a row.
    """
    M, table = rows.heads.shape[1], groups.table
    g, offset = np.zeros((TILE, M)), np.empty(TILE, np.int64)
    index, number = np.empty((TOUCHED, TILE), np.int64), np.empty((TOUCHED, TILE))
    z, own, p, sure = np.zeros(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    flat, flat_g = gradient.reshape(-1), g.reshape(-1)
    for first in range(begin, end, TILE):
        n = min(TILE, end - first)
        which = np.arange(first, first + n)
        find_cells(rows, groups, which, cells)
        for m in range(M):
            for r in range(n):
                z[r] = rows.heads[first + r, m]
            y, w = labels[m, first : first + n], weight[min(m, len(weight) - 1), first : first + n]
            _weigh_labels(n, z, y, w, p, sure, own)
            for r in range(n):
                total = gradient[period[first + r]]
                g[r, m] = own[r]
                total[0, m] += own[r]
                total[1, m] += own[r] * z[r]
        for r in range(n):
            offset[r] = gradient.shape[1] * int(period[first + r])
            for j in range(M):
                score = np.float64(rows.inputs[first + r, j])
                _add_heads(flat, (offset[r] + 2 + j) * M, flat_g, r * M, score, M)
        for t in range(len(table)):
            touched = touch(table[t], rows, which, cells, index, number)
            _add_touched(table[t, 3], n, touched, index, number, offset, flat_g, flat, M)


@simd_kernel
def _add_touched(
    start: int,
    n: int,
    touched: int,
    index: Any,
    number: Any,
    offset: Any,
    g: Any,
    flat: Any,
    M: int,
) -> None:
    """Add what a tile of rows adds to the gradients of the group that starts there."""
    for r in range(n):
        for k in range(touched):
            _add_heads(flat, (offset[r] + start + index[k, r]) * M, g, r * M, number[k, r], M)


@simd_function
def _add_heads(flat: Any, to: int, g: Any, at: int, number: float, M: int) -> None:
    """Add what one coefficient of a row adds to the gradient of every head."""
    # Of an unsigned place numba does not ask whether it counts from the end.
    to, at = np.uint64(to), np.uint64(at)  # type: ignore[assignment]
    for k in range(np.uint64(M)):
        flat[to + k] += number * g[at + k]


@simd_kernel
def add_blocks(which: Any, rows: Any, groups: Any, cells: Any, corners: Any, sums: Any) -> None:
    """Add the lower half of each group's own block of curvature, some rows of weight 1.

    Of each coefficient a row is kept, as wide as `BAND` where several are touched together.
    """
    shape = TOUCHED, TILE
    index, number = np.empty(shape, np.int64), np.empty(shape, np.float32)
    for first in range(0, len(which), TILE):
        some = which[first : first + TILE]
        find_cells(rows, groups, some, cells)
        for t in range(len(groups.table)):
            group, own = groups.table[t], sums[corners[t] : corners[t + 1]]
            touched = touch(group, rows, some, cells, index, number)
            width = len(BAND) if touched > 1 else 1
            for r in range(len(some)):
                for k in range(touched):
                    at = index[k, r] * width
                    for j in range(k + 1):
                        own[at + _APART[k, j]] += number[k, r] * number[j, r]


@kernel
def add_curvature(m: int, which: Any, rows: Any, groups: Any, cells: Any, sums: Any) -> None:
    """Add the lower half of Σ x xᵀ over some rows, for all coefficients of head m."""
    M, table = rows.heads.shape[1], groups.table
    most = 2 + M + TOUCHED * len(table)
    every, each = np.empty((most, TILE), np.int64), np.empty((most, TILE), np.float32)
    index, number = np.arange(most), np.empty(most, np.float32)
    for first in range(0, len(which), TILE):
        some = which[first : first + TILE]
        find_cells(rows, groups, some, cells)
        n = 2 + M
        for t in range(len(table)):
            touched = touch(table[t], rows, some, cells, every[n:], each[n:])
            every[n : n + touched] += table[t, 3]
            n += touched
        for r in range(len(some)):
            row = some[r]
            number[0], number[1] = 1.0, rows.heads[row, m]
            for j in range(M):
                number[2 + j] = rows.inputs[row, j]
            for k in range(2 + M, n):
                index[k], number[k] = every[k, r], each[k, r]
            _add_products(n, index, number, sums)


@simd_kernel
def _add_products(n: int, index: Any, number: Any, sums: Any) -> None:
    """Add the lower half of x xᵀ of a row; indices ascend, as groups and corners do."""
    for k in range(n):
        own, x = sums[index[k]], number[k]
        for j in range(k + 1):
            own[index[j]] += x * number[j]
