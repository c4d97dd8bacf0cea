"""The kernels that add up the heads' sums: logits, Σ g a and Σ h a aᵀ of runs, and those of x.

See `harmonrank.model.linear.heads_sums` for what they add up, and why by context.
"""

__all__ = [
    "RUN_ROWS",
    "add_runs",
    "add_to_contexts",
    "fold_contexts",
    "put",
    "write_logits",
]

from typing import Any

import numpy as np

from harmonrank.model.linear.head_columns import BY_CONTEXT, INTERCEPT, MEAN, OTHERS, OWN, SURPRISE
from harmonrank.support.kernel import inline_kernel, kernel, sum_kernel

RUN_ROWS = 2048
"""Rows of one context are added up in float32 by this many, then in float64."""

# Beyond this a logit's probability is 0 or 1 in float32.
_FARTHEST = np.float32(60.0)


@kernel
def put(
    coordinates: Any, labels: Any, of_row: Any, rows: Any, centre: Any, unit: Any, away: Any, y: Any
) -> None:
    """Fill away and labels, row by row in their order."""
    for i in range(len(rows)):
        row = rows[i]
        for m in range(len(away)):
            away[m, i] = (coordinates[row, m] - centre[of_row[row], m]) * unit[m]
            y[m, i] = labels[row, m]


@kernel
def write_logits(
    away: Any, start: Any, context: Any, low: int, high: int, intercept: Any, slope: Any, z: Any
) -> None:
    """Write minus the logit of every head, kept within bounds, for some runs."""
    M, before = len(away), start[low]
    for run in range(low, high):
        c, first, end = context[run], start[run], start[run + 1]
        for m in range(M):
            # A loop over a whole slice needs no test for negative positions.
            out = z[m, first - before : end - before]
            for r in range(out.size):
                out[r] = -intercept[c, m]
            for j in range(M):
                b, x = slope[c, m, j], away[j, first:end]
                for r in range(out.size):
                    out[r] -= b * x[r]
            for r in range(out.size):
                out[r] = min(max(out[r], -_FARTHEST), _FARTHEST)


@sum_kernel
def add_runs(
    away: Any, labels: Any, weight: Any, start: Any, low: int, high: int, e: Any, of_runs: Any
) -> None:
    """Write Σ g a and the lower half of Σ h a aᵀ of every head and run; e is exp of −logit."""
    M, before = len(away), start[low]
    g, h = np.empty((M, RUN_ROWS), np.float32), np.empty((M, RUN_ROWS), np.float32)
    q = np.empty(RUN_ROWS, np.float32)
    for run in range(low, high):
        first, end = start[run], start[run + 1]
        n = end - first
        for m in range(M):
            _residuals(
                e[m, first - before : end - before], labels[m, first:end],
                weight[min(m, len(weight) - 1), first:end], g[m], h[m],
            )  # fmt: skip
            of_runs[run, m, 0], of_runs[run, m, M + 1] = _total(g[m, :n]), _total(h[m, :n])
        k = M + 2
        for i in range(M):
            x = away[i, first:end]
            for m in range(M):
                of_runs[run, m, 1 + i] = _product(g[m], x)
                of_runs[run, m, k] = _product(h[m], x)
            for j in range(i + 1):
                y, k = away[j, first:end], k + 1
                for r in range(n):
                    q[r] = x[r] * y[r]
                for m in range(M):
                    of_runs[run, m, k] = _product(h[m], q[:n])
            k += 1


@sum_kernel
def _residuals(e: Any, y: Any, weight: Any, g: Any, h: Any) -> None:
    """Write weight times y − p and p(1−p)."""
    one = np.float32(1)
    for r in range(e.size):
        # np.divide, as `/` would test for zero and keep the loop from being vectorised.
        p = np.divide(one, one + e[r])
        g[r] = weight[r] * (y[r] - p)
        h[r] = weight[r] * p * (one - p)


@sum_kernel
def _product(a: Any, b: Any) -> Any:
    """Return Σ a b over the length of b."""
    total = np.float32(0)
    for r in range(b.size):
        total += a[r] * b[r]
    return total


@sum_kernel
def _total(a: Any) -> Any:
    total = np.float32(0)
    for r in range(a.size):
        total += a[r]
    return total


@kernel
def add_to_contexts(of_runs: Any, context: Any, gradient: Any, curvature: Any) -> None:
    """Add each run's sums to those of its context, and unpack the halves of the matrices."""
    M, n = gradient.shape[0], gradient.shape[2]
    for run in range(len(of_runs)):
        c = context[run]
        for m in range(M):
            for i in range(n):
                gradient[m, c, i] += of_runs[run, m, i]
            k = n
            for i in range(n):
                for j in range(i + 1):
                    curvature[m, c, i, j] += of_runs[run, m, k]
                    curvature[m, c, j, i] = curvature[m, c, i, j]
                    k += 1


@kernel
def fold_contexts(
    m: int, K: int, mean: Any, excess: Any, surprise: Any, columns: Any, ga: Any, haa: Any,
    slopes: Any, curved: Any,
) -> None:  # fmt: skip
    """Turn each context's Σ g a and Σ h a aᵀ into Σ g x and Σ h x xᵀ of head m, and add them up.

    This is eq. 6 of docs/default-method.md. Each x has K numbers. A context value's number is 1 or
    0, so its sums are those of its contexts.
    """
    M, features = surprise.shape[1], columns.shape[1]
    sums, hxa = np.empty((M + 2, M + 1)), np.empty((K, M + 1))
    x = np.empty(K)
    for c in range(len(columns)):
        # The sums of g, then of h a, as rows; x = T a is taken of each column, then of each row.
        for i in range(M + 1):
            sums[0, i] = ga[c, i]
            for j in range(M + 1):
                sums[1 + i, j] = haa[c, i, j]
        _numbers(sums[0], m, mean[c], excess[c], surprise[c], x)
        for k in range(K):
            slopes[k] += x[k]
        for i in range(M + 1):
            # The matrix is symmetric: its row i is its column i.
            _numbers(sums[1 + i], m, mean[c], excess[c], surprise[c], x)
            for k in range(K):
                hxa[k, i] = x[k]
        for k in range(K):
            _numbers(hxa[k], m, mean[c], excess[c], surprise[c], x)
            for other in range(K):
                curved[k, other] += x[other]
        for a in range(features):
            row = columns[c, a]
            slopes[row] += ga[c, 0]
            for k in range(K):
                curved[row, k] += hxa[k, 0]
            for b in range(features):
                curved[row, columns[c, b]] += hxa[0, 0]


@inline_kernel
def _numbers(a: Any, m: int, mean: Any, excess: Any, surprise: Any, x: Any) -> None:
    """Write x = T a: one, own, by context, surprise, mean, others (see `HeadColumns`)."""
    r = 0.0
    for j in range(surprise.size):
        r += surprise[j] * a[1 + j]
    x[INTERCEPT], x[OWN], x[MEAN] = a[0], a[1 + m] + mean * a[0], mean * a[0]
    x[BY_CONTEXT], x[SURPRISE] = excess * r, r
    k = OTHERS
    for j in range(surprise.size):
        if j != m:
            x[k] = a[1 + j]
            k += 1
