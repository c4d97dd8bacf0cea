"""The hot loop of the residual's fit: logits, log-likelihood and gradient of one head.

Rows come in the order of their contexts. All that depends on the context is the same for a run of
rows, so values, slopes and pairs are looked up once per run, and their gradient is added once: what
they cost does not grow with their number where contexts have many rows. Curves and surfaces are
taken through a tile of rows one after the other.
"""

__all__ = ["TILE", "add_gradient", "weigh_labels"]

from typing import Any

import numpy as np

from harmonrank.model.scorer.elementary import take_logarithms, take_sigmoids
from harmonrank.model.terms.residual import CURVE_KNOTS, SURFACE_KNOTS
from harmonrank.model.terms.residual_kernels import CURVE, PAIR, SLOPE, SURFACE, inputs_in, layout
from harmonrank.support.kernel import inline_kernel, kernel, lane_kernel
from harmonrank.support.simd import item

TILE = 128
"""Rows at a time, whose intermediate results stay in a near cache."""

_CELLS = SURFACE_KNOTS - 1
_TERMS = 4  # Of a bilinear surface within a cell: 1, y, x and xy.


@lane_kernel
def weigh_labels(n: int, z: Any, labels: Any, weight: Any, p: Any, sure: Any, g: Any) -> float:
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


@inline_kernel
def _put_places(
    which: Any, rows: Any, low: Any, per_unit: Any, knots: int, cell: Any, share: Any
) -> None:
    """Write the knot at or below some inputs of all rows, and the share of the next one."""
    for i in which:
        for r in range(len(rows)):
            place = min(max((rows[r, i] - low[i]) * per_unit[i], 0.0), 1.0) * (knots - 1)
            cell[i, r] = min(int(place), knots - 2)
            share[i, r] = place - cell[i, r]


@kernel
def add_gradient(
    m: int, begin: int, end: int, labels: Any, weight: Any, table: Any, theta: Any, out: Any,
    gradient: Any, low: Any, per_unit: Any, slots: Any, inputs: Any, contexts: Any, context: Any,
    heads: Any,
) -> float:  # fmt: skip
    """Write the logit of every row, add the gradient; return the log-likelihood.

    Letters are those of `harmonrank.model.terms.residual`, of eq. 7 of docs/default-method.md.
    """
    M, V = heads.shape[1], inputs.shape[1]
    cell, share = np.empty((V, TILE), np.int64), np.empty((V, TILE))
    wide, part = np.empty((V, TILE), np.int64), np.empty((V, TILE))
    z, g, p, sure = np.zeros(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    kinds, starts = layout(table, 2 + M)
    curves, surfaces = range(kinds[CURVE], kinds[SLOPE]), range(kinds[SURFACE], kinds[PAIR])
    curved = inputs_in(table, kinds[CURVE], kinds[SLOPE], V)
    joined = inputs_in(table, kinds[SURFACE], kinds[PAIR], V)
    cells = np.empty((len(surfaces), _CELLS * _CELLS * _TERMS))
    for t in surfaces:
        _put_cells(cells[t - kinds[SURFACE]], theta[starts[t] :])
    sums = np.zeros(cells.shape)
    slope = np.empty(M)
    value = 0.0
    for first in range(begin, end, TILE):
        n = min(TILE, end - first)
        rows = inputs[first : first + n]
        r = 0
        while r < n:
            stop = _end_of_run(context, first, r, n)
            code = contexts[context[first + r]]
            intercept = _affine(theta, table, starts, kinds, slots, code, slope)  # (a, b, d, f)
            for i in range(r, stop):
                head = np.float64(heads[first + i, m])
                total = head + intercept + theta[1] * head
                for j in range(M):
                    total += slope[j] * rows[i, j]
                z[i] = total
            r = stop
        _put_places(curved, rows, low, per_unit, CURVE_KNOTS, cell, share)
        for t in curves:  # (c)
            a, start = table[t, 1], starts[t]
            for r in range(n):
                k = start + cell[a, r]
                z[r] += theta[k] + share[a, r] * (theta[k + 1] - theta[k])
        _put_places(joined, rows, low, per_unit, SURFACE_KNOTS, wide, part)
        for t in surfaces:  # (e)
            a, b = table[t, 1], table[t, 2]
            _add_surface(cells[t - kinds[SURFACE]], n, wide[a], wide[b], part[a], part[b], z)
        for r in range(n):
            out[first + r] = z[r]
        there = slice(first, first + n)
        value += weigh_labels(n, z, labels[there], weight[there], p, sure, g)
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
                    slope[j] += g[i] * rows[i, j]
            code = contexts[context[first + r]]
            gradient[1] += by_head
            _add_affine(gradient, table, starts, kinds, slots, code, total, slope)
            r = stop
        for t in curves:
            a, start = table[t, 1], starts[t]
            for r in range(n):
                k, x = start + cell[a, r], g[r] * share[a, r]
                gradient[k] += g[r] - x
                gradient[k + 1] += x
        for t in surfaces:
            a, b = table[t, 1], table[t, 2]
            total_of = sums[t - kinds[SURFACE]]
            _add_to_cells(total_of, n, wide[a], wide[b], part[a], part[b], g)
    for t in surfaces:
        _add_corners(gradient[starts[t] :], sums[t - kinds[SURFACE]])
    return value


@kernel
def _affine(
    theta: Any, table: Any, starts: Any, kinds: Any, slots: Any, code: Any, slope: Any
) -> float:
    """Return the intercept of a context, and write what it multiplies the scores with."""
    intercept = theta[0]
    for j in range(len(slope)):
        slope[j] = theta[2 + j]
    for t in range(kinds[CURVE]):
        intercept += theta[starts[t] + code[table[t, 1]]]
    for t in range(kinds[SLOPE], kinds[SURFACE]):
        slope[table[t, 1]] += theta[starts[t] + code[table[t, 2]]]
    for t in range(kinds[PAIR], len(table)):
        a, b = table[t, 1], table[t, 2]
        intercept += theta[starts[t] + code[a] * slots[b] + code[b]]
    result: float = intercept
    return result


@kernel
def _add_affine(
    gradient: Any, table: Any, starts: Any, kinds: Any, slots: Any, code: Any, total: float,
    slope: Any,
) -> None:  # fmt: skip
    """Add the gradient of a run of rows whose Σ g and Σ g u these are."""
    gradient[0] += total
    for j in range(len(slope)):
        gradient[2 + j] += slope[j]
    for t in range(kinds[CURVE]):
        gradient[starts[t] + code[table[t, 1]]] += total
    for t in range(kinds[SLOPE], kinds[SURFACE]):
        gradient[starts[t] + code[table[t, 2]]] += slope[table[t, 1]]
    for t in range(kinds[PAIR], len(table)):
        a, b = table[t, 1], table[t, 2]
        gradient[starts[t] + code[a] * slots[b] + code[b]] += total


@kernel
def _put_cells(cells: Any, theta: Any) -> None:
    """Write each cell of a surface as a polynomial, whose terms lie side by side."""
    for a in range(_CELLS):
        for b in range(_CELLS):
            k, to = a * SURFACE_KNOTS + b, (a * _CELLS + b) * _TERMS
            near, beside = theta[k], theta[k + 1] - theta[k]
            above = theta[k + SURFACE_KNOTS]
            cells[to], cells[to + 1], cells[to + 2] = near, beside, above - near
            cells[to + 3] = theta[k + SURFACE_KNOTS + 1] - above - beside


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


@lane_kernel
def _add_surface(cells: Any, n: int, row: Any, column: Any, x: Any, y: Any, z: Any) -> None:
    for r in range(n):
        k = (row[r] * _CELLS + column[r]) * _TERMS
        near = item(cells, k) + y[r] * item(cells, k + 1)
        z[r] += near + x[r] * (item(cells, k + 2) + y[r] * item(cells, k + 3))


@lane_kernel
def _add_to_cells(sums: Any, n: int, row: Any, column: Any, x: Any, y: Any, g: Any) -> None:
    """Add the terms of each row to the sums of its cell."""
    for r in range(n):
        k, one, over = (row[r] * _CELLS + column[r]) * _TERMS, g[r], g[r] * x[r]
        sums[k] += one
        sums[k + 1] += one * y[r]
        sums[k + 2] += over
        sums[k + 3] += over * y[r]
