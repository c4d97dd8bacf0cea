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
from harmonrank.support.kernel import inline_kernel, kernel, lane_function, lane_kernel

BAND = (0, 1, SURFACE_KNOTS - 1, SURFACE_KNOTS, SURFACE_KNOTS + 1)
"""How far apart the coefficients are that some row touches together; a row of them is kept."""

# The place in `BAND` of two coefficients that a row touches, the later one first.
_APART = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [3, 2, 0, 0], [4, 3, 1, 0]])


@lane_kernel
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
    M, table = rows.heads.shape[1], groups.table
    z, g, p, sure = np.zeros(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    index, number, slope = np.empty(TOUCHED, np.int64), np.empty(TOUCHED), np.empty(M)
    value = 0.0
    for first in range(begin, end, TILE):
        n = min(TILE, end - first)
        which = np.arange(first, first + n)
        r = 0
        while r < n:
            stop = _end_of_run(rows.context, first, r, n)
            intercept = _affine(theta, rows, groups, first + r, slope)  # (a, b, d, f)
            for i in range(r, stop):
                head = np.float64(rows.heads[first + i, m])
                total = head + intercept + theta[1] * head
                for j in range(M):
                    total += slope[j] * rows.inputs[first + i, j]
                z[i] = total
            r = stop
        find_cells(rows, groups, which, cells)
        for t in range(len(table)):  # (c, e)
            if table[t, 0] == CURVE or table[t, 0] == SURFACE:
                own = theta[table[t, 3] :]
                for r in range(n):
                    for k in range(touch(table[t], rows, first + r, cells, r, index, number)):
                        z[r] += number[k] * own[index[k]]
        for r in range(n):
            out[first + r] = z[r]
        there = slice(first, first + n)
        value += _weigh_labels(n, z, labels[there], weight[there], p, sure, g)
        # The same coefficients once more, each with the number that z is linear in.
        r = 0
        while r < n:
            stop = _end_of_run(rows.context, first, r, n)
            slope[:] = 0.0
            total, by_head = 0.0, 0.0
            for i in range(r, stop):
                total += g[i]
                by_head += g[i] * rows.heads[first + i, m]
                for j in range(M):
                    slope[j] += g[i] * rows.inputs[first + i, j]
            gradient[1] += by_head
            _add_affine(gradient, rows, groups, first + r, total, slope)
            r = stop
        for t in range(len(table)):
            if table[t, 0] == CURVE or table[t, 0] == SURFACE:
                own = gradient[table[t, 3] :]
                for r in range(n):
                    for k in range(touch(table[t], rows, first + r, cells, r, index, number)):
                        own[index[k]] += number[k] * g[r]
    return value


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


@kernel
def add_look(
    begin: int, end: int, labels: Any, weight: Any, period: Any, rows: Any, groups: Any,
    cells: Any, gradient: Any,
) -> None:  # fmt: skip
    """Add gradients of all heads at their linear logits, of each period.

    Heads are side by side, as all touch the same coefficients of a row.
    """
    M, table = rows.heads.shape[1], groups.table
    g, offset = np.zeros((TILE, M)), np.empty(TILE, np.int64)
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
                number = np.float64(rows.inputs[first + r, j])
                _add_heads(flat, (offset[r] + 2 + j) * M, flat_g, r * M, number, M)
        for t in range(len(table)):
            _add_touched(table[t], rows, first, n, cells, offset, flat_g, flat)


@lane_kernel
def _add_touched(
    group: Any, rows: Any, first: int, n: int, cells: Any, offset: Any, g: Any, flat: Any
) -> None:
    """Add what a tile of rows adds to the gradients of one group."""
    M = rows.heads.shape[1]
    index, number = np.empty(TOUCHED, np.int64), np.empty(TOUCHED)
    for r in range(n):
        for k in range(touch(group, rows, first + r, cells, r, index, number)):
            _add_heads(flat, (offset[r] + group[3] + index[k]) * M, g, r * M, number[k], M)


@lane_function
def _add_heads(flat: Any, to: int, g: Any, at: int, number: float, M: int) -> None:
    """Add what one coefficient of a row adds to the gradient of every head."""
    # Of an unsigned place numba does not ask whether it counts from the end.
    to, at = np.uint64(to), np.uint64(at)  # type: ignore[assignment]
    for k in range(np.uint64(M)):
        flat[to + k] += number * g[at + k]


@kernel
def add_blocks(which: Any, rows: Any, groups: Any, cells: Any, corners: Any, sums: Any) -> None:
    """Add the lower half of each group's own block of curvature, some rows of weight 1.

    Of each coefficient a row is kept, as wide as `BAND` where several are touched together.
    """
    index, number = np.empty(TOUCHED, np.int64), np.empty(TOUCHED, np.float32)
    for first in range(0, len(which), TILE):
        some = which[first : first + TILE]
        find_cells(rows, groups, some, cells)
        for t in range(len(groups.table)):
            group, own = groups.table[t], sums[corners[t] : corners[t + 1]]
            width = len(BAND) if group[0] == CURVE or group[0] == SURFACE else 1
            for r in range(len(some)):
                for k in range(touch(group, rows, some[r], cells, r, index, number)):
                    for j in range(k + 1):
                        own[index[k] * width + _APART[k, j]] += number[k] * number[j]


@kernel
def add_curvature(m: int, which: Any, rows: Any, groups: Any, cells: Any, sums: Any) -> None:
    """Add the lower half of Σ x xᵀ over some rows, for all coefficients of head m."""
    M, table = rows.heads.shape[1], groups.table
    most = 2 + M + TOUCHED * len(table)
    index, number = np.empty(most, np.int64), np.empty(most, np.float32)
    for first in range(0, len(which), TILE):
        some = which[first : first + TILE]
        find_cells(rows, groups, some, cells)
        for r in range(len(some)):
            row, n = some[r], 2 + M
            index[:n] = np.arange(n)
            number[0], number[1], number[2:n] = 1.0, rows.heads[row, m], rows.inputs[row, :M]
            for t in range(len(table)):
                count = touch(table[t], rows, row, cells, r, index[n:], number[n:])
                index[n : n + count] += table[t, 3]
                n += count
            # Groups come in ascending order, and so do the corners of a surface.
            for k in range(n):
                own, x = sums[index[k]], number[k]
                for j in range(k + 1):
                    own[index[j]] += x * number[j]
