"""The kernels that add up sums of heads row by row, a tile of rows at a time."""

__all__ = ["SIDE", "add_tiles", "put_surprise", "write_inputs", "write_row_logits"]

from typing import Any

import numpy as np

from harmonrank.model.linear.head_columns import BY_CONTEXT, INTERCEPT, MEAN, OTHERS, OWN, SURPRISE
from harmonrank.model.terms.residual import NEAR
from harmonrank.support.kernel import kernel, simd_kernel, sum_kernel

SIDE = 4
"""Sums that one loop adds up side by side."""

_TILE = 128  # Rows whose numbers, of one head, stay in a near cache.
_FLUSH = 64  # Tiles after which sums in float32 are added to those in float64.
# Beyond this a logit's probability is 0 or 1 in float32.
_FARTHEST = np.float32(60.0)


@kernel
def put_surprise(
    surprise: Any, context: Any, low: int, high: int, before: int, skip: int, away: Any, out: Any
) -> None:
    """Write C⁻¹ times the deviations of some rows; matrices are given from context `before` on."""
    M = len(away)
    total = np.empty(M)
    for i in range(low, high):
        matrix = surprise[context[i] - before]
        total[:] = 0.0
        for k in range(M):  # The matrix is symmetric: its row k is its column k.
            x, row = np.float64(away[k, skip + i]), matrix[k]
            for j in range(M):
                total[j] += row[j] * x
        for j in range(M):
            out[j, i] = total[j]


@kernel
def write_row_logits(m: int, theta: Any, rows: Any, columns: Any, z: Any) -> None:
    """Write the logit of head m for every row of `RowSums.given`, kept within bounds.

    `columns` are those of each context's values among the coefficients.
    """
    skip, away, surprise, context, few = rows
    M, n = surprise.shape
    for first in range(0, n, _TILE):
        out, there = z[first : first + _TILE], skip + first
        own, r = away[m, there : there + _TILE], surprise[m, first : first + _TILE]
        for i in range(out.size):
            c = context[first + i]
            mean, excess = few[0, m, c], few[1, m, c]
            total = theta[INTERCEPT] + (theta[OWN] + theta[MEAN]) * mean
            total += theta[OWN] * own[i]
            total += (theta[BY_CONTEXT] * excess + theta[SURPRISE]) * r[i]
            for f in range(columns.shape[1]):
                total += theta[columns[c, f]]
            out[i] = total
        k = OTHERS
        for j in range(M):
            if j != m:
                b, x = np.float32(theta[k]), away[j, there : there + _TILE]
                for i in range(out.size):
                    out[i] += b * x[i]
                k += 1
        for i in range(out.size):
            out[i] = min(max(out[i], -_FARTHEST), _FARTHEST)


@kernel
def write_inputs(rows: Any, inputs: Any) -> None:
    """Write the inputs of the residual for every row of `RowSums.given` (see `inputs_of`)."""
    skip, away, surprise, context, few = rows
    M, n = surprise.shape
    for i in range(n):
        c, distance = context[i], 0.0
        for j in range(M):
            x, r = away[j, skip + i], surprise[j, i]
            # As r = C⁻¹ away, r·away adds up to the squared Mahalanobis distance.
            distance += np.float64(r) * x
            inputs[i, j] = x + few[0, j, c]
            inputs[i, M + j] = r * few[2, j, c]
        inputs[i, 2 * M] = np.log(distance / M + NEAR)


@kernel
def add_tiles(
    m: int, K: int, e: Any, rows: Any, columns: Any, labels: Any, weight: Any, sums: Any
) -> None:
    """Add Σ g x and Σ h x xᵀ of head m over all rows; e is exp of −logit.

    Args:
        m: The head.
        K: Its numbers beside those of context values.
        e: Of each row.
        rows: `RowSums.given`.
        columns: Of each context's values.
        labels: From the same row on as the deviations.
        weight: So too.
        sums: Σ g x; Σ h x xᵀ of the K numbers up to the diagonal; Σ h x and then Σ g of each
            context value; Σ h of each pair of values of different features.
    """
    (skip, away, surprise, context, few), (slopes, corner, of_slot, pairs) = rows, sums
    M, total = surprise.shape
    wide = corner.shape[1]
    x = np.zeros((wide, _TILE), np.float32)
    g, h, hx = np.zeros(_TILE, np.float32), np.zeros(_TILE, np.float32), np.zeros(_TILE, np.float32)
    sums = np.empty(SIDE, np.float32)
    across = np.zeros((_TILE, of_slot.shape[1]), np.float32)
    near = np.zeros(of_slot.shape, np.float32)
    for first in range(0, total, _TILE):
        n, there = min(_TILE, total - first), skip + first
        h[n:], g[n:] = 0.0, 0.0  # So that what is left in a tile counts nothing.
        for i in range(n):
            c = context[first + i]
            p = np.divide(np.float32(1), np.float32(1) + e[first + i])
            g[i] = weight[there + i] * (labels[there + i] - p)
            h[i] = weight[there + i] * p * (np.float32(1) - p)
            mean, r = few[0, m, c], surprise[m, first + i]
            x[INTERCEPT, i], x[OWN, i], x[MEAN, i] = 1.0, away[m, there + i] + mean, mean
            x[BY_CONTEXT, i], x[SURPRISE, i] = few[1, m, c] * r, r
        k = OTHERS
        for j in range(M):
            if j != m:
                x[k, :n] = away[j, there : there + n]
                k += 1
        for k in range(K):
            _scale(h, x[k], hx)
            for i in range(n):
                across[i, k] = hx[i]
            slopes[k] += _product(g, x[k])
            for other in range(0, k + 1, SIDE):
                _products(hx, x[other], x[other + 1], x[other + 2], x[other + 3], sums)
                for side in range(SIDE):
                    corner[k, other + side] += sums[side]
        for i in range(n):
            across[i, K] = g[i]
        _add_to_slots(n, context[first : first + n], columns, across, h, near, pairs)
        if (first // _TILE + 1) % _FLUSH == 0 or first + n == total:
            of_slot += near
            near[:] = 0.0


@simd_kernel
def _scale(a: Any, b: Any, out: Any) -> None:
    for r in range(_TILE):
        out[r] = a[r] * b[r]


@sum_kernel
def _product(a: Any, b: Any) -> Any:
    total = np.float32(0)
    for r in range(_TILE):
        total += a[r] * b[r]
    return total


@sum_kernel
def _products(a: Any, b: Any, c: Any, d: Any, e: Any, sums: Any) -> None:
    """Write the sums of four products: a number that was loaded serves them all."""
    zero = np.float32(0)
    one, two, three, four = zero, zero, zero, zero
    for r in range(_TILE):
        one += a[r] * b[r]
        two += a[r] * c[r]
        three += a[r] * d[r]
        four += a[r] * e[r]
    sums[0], sums[1], sums[2], sums[3] = one, two, three, four


@simd_kernel
def _add_to_slots(
    rows: int, context: Any, columns: Any, across: Any, h: Any, near: Any, pairs: Any
) -> None:
    for i in range(rows):
        code, own = columns[context[i]], across[i]
        for f in range(len(code)):
            total = near[code[f]]
            for k in range(len(own)):
                total[k] += own[k]
            for b in range(f):
                pairs[code[f], code[b]] += h[i]
