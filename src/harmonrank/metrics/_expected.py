"""Figures of true probabilities: the best scores, and the expected AUC within requests.

With labels independent given p, a positive i above a negative j adds 1/(n⁺n⁻) to the AUC of its
request, eq. 2 of docs/per-request.md. With N the positives among the other n − 2 rows its
expectation is eq. 3 of docs/per-request.md,

    K_ij = E 1/((1 + N)(n − 1 − N)) = 1/n ∫₀¹ Π_k (q_k + p_k t) + Π_k (p_k + q_k t) dt,  k ≠ i, j,

and at every t the sum over pairs is one over a sorted request. The integrand is a polynomial, so a
Gauss–Legendre rule of n/2 nodes has no error.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._inputs import FloatArray, IntArray, check_inputs, request_layout
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import inline_kernel, kernel

# More change nothing in the tenth digit of a request of a thousand rows.
_MOST_NODES = 64


def best_score(truth: ArrayLike, weights: Sequence[float] | None = None) -> NDArray[np.float64]:
    """Return the score with the largest Σ_m w_m AUC_m on these rows.

    s*(x) = Σ_m w_m p_m(x) / (π_m (1 − π_m)), π_m the mean of p_m over the rows. A pair (i, j) of
    objective m gains p_i (1 − p_j) if i is put above j and p_j (1 − p_i) if below; the
    difference is p_i − p_j, so the pair's total is the difference of one function, s*.
    A weight may be below 0, as of an unwanted objective (eq. 1 of docs/objectives.md).
    An objective that is certain on all rows (π of 0 or 1) has no AUC and is left out.

    >>> best_score([[0.1, 0.5], [0.3, 0.5]])
    array([2.625, 3.875])

    Args:
        truth: (rows, objectives), p_m given all that a fusion sees.
        weights: one per objective; all 1 if left out.
    """
    p = np.asarray(truth, dtype=np.float64)
    if p.ndim != 2 or not len(p):
        raise UsageError(f"`truth` must have the shape (rows, objectives). Got {p.shape}.")
    w = np.ones(p.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != p.shape[1:]:
        raise UsageError(f"`weights` must have one number per objective, {p.shape[1]}. Got {w!r}.")
    variance = p.mean(0) * (1 - p.mean(0))
    effective = np.divide(w, variance, out=np.zeros_like(w), where=variance > 0)
    score: NDArray[np.float64] = p @ effective
    return score


def expected_grouped_auc(
    scores: ArrayLike, probabilities: ArrayLike, groups: ArrayLike
) -> FloatArray:
    """Return what `grouped_auc` is on average over labels drawn with these probabilities, (M,).

    Σ_g n_g E[AUC_gm; usable] / Σ_g n_g P(usable), usable being a request with a positive and a
    negative: exact but for the spread of the denominator, which vanishes with many requests.
    Ties count one half; an objective that is certain everywhere is nan.

    Args:
        scores: (n,), finite.
        probabilities: (n, M) or (n,), of a label of 1 in each row, independent of the others.
        groups: (n,) request ids.

    >>> expected_grouped_auc([1, 2], [0.2, 0.6], [7, 7]).round(6)  # .8 · .6 of .8 · .6 + .2 · .4
    array([0.857143])
    """
    total, say = (part.sum(axis=0) for part in expected_requests(scores, probabilities, groups))
    area = np.full(len(total), np.nan)
    np.divide(total, say, out=area, where=say > 0)
    return area


def expected_requests(
    scores: ArrayLike, probabilities: ArrayLike, groups: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return n_g E[AUC_gm; usable] and n_g P(usable) of every request, (requests, M)."""
    values, p, _ = check_inputs(scores, probabilities, None)
    order, starts = request_layout(values, groups)
    each: tuple[FloatArray, FloatArray] = _each(
        values, np.asarray(p, np.float64), order, starts, *_rule(starts)
    )
    return each


def request_gains(probabilities: ArrayLike, groups: ArrayLike) -> FloatArray:
    """Return κ_m, the gain in per-request AUC for a unit of probability of m, (n, M).

    κ_m = n_g K_m(g)/A_m with K the mean of K_ij over the pairs of the row's request and A_m the
    expected number of rows in usable requests: eq. 4 of docs/per-request.md. All rows of a request
    have the same; a request of one row has 0.

    >>> request_gains([0.5, 0.5, 0.5, 0.5], [1, 1, 2, 2])[:, 0]
    array([1., 1., 1., 1.])
    """
    table = np.asarray(probabilities, np.float64)
    values, p, _ = check_inputs(np.zeros(len(table)), table, None)
    order, starts = request_layout(values, groups)
    gains, say = _gains(np.asarray(p, np.float64), order, starts, *_rule(starts))
    share = np.zeros_like(gains)
    np.divide(gains, say, out=share, where=say > 0)
    return share


def best_request_score(
    probabilities: ArrayLike, groups: ArrayLike, weights: ArrayLike | None = None
) -> FloatArray:
    """Return Σ_m w_m κ_m p_m, which orders each request nearly as well as any score can.

    It would be the best if K_ij were the same for all pairs of a request: eq. 4 of
    docs/per-request.md, where it is shown how little is lost.
    """
    p = np.asarray(probabilities, np.float64)
    p = p[:, None] if p.ndim == 1 else p
    w = np.ones(p.shape[1]) if weights is None else np.asarray(weights, np.float64)
    score: FloatArray = (request_gains(p, groups) * p) @ w
    return score


def _rule(starts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights on (0, 1) that suit the longest request."""
    longest = int(np.diff(starts).max(initial=2))
    x, w = np.polynomial.legendre.leggauss(min(longest // 2 + 1, _MOST_NODES))
    return (x + 1) / 2, w / 2


@inline_kernel
def _chance_of_both(p: Any, rows: Any, m: int) -> float:
    """Return the probability that a request has a positive and a negative."""
    if rows.size < 2:
        return 0.0
    none = every = 1.0
    for row in rows:
        none *= 1.0 - p[row, m]
        every *= p[row, m]
    return max(1.0 - none - every, 0.0)


@kernel
def _each(
    scores: NDArray[Any], p: FloatArray, order: IntArray, starts: IntArray, t: FloatArray,
    w: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Write n_g E[AUC_g; usable] and n_g P(usable)."""
    requests, M = starts.size - 1, p.shape[1]
    total, say = np.zeros((requests, M)), np.zeros((requests, M))
    for g in range(requests):
        rows = order[starts[g] : starts[g + 1]]
        for m in range(M):
            both = _chance_of_both(p, rows, m)
            if both == 0.0:
                continue
            say[g, m] = rows.size * both
            for q in range(t.size):
                total[g, m] += w[q] * (_won(scores, p, rows, m, t[q], 1.0)
                                       + _won(scores, p, rows, m, 1.0, t[q]))  # fmt: skip
    return total, say


@inline_kernel
def _won(scores: Any, p: Any, rows: Any, m: int, a: float, b: float) -> float:
    """Return Σ p_i q_j [s_i > s_j] Π_k≠i,j (a p_k + b q_k), ties one half.

    With b of 1 the product is that of the positives' integral at a, with a of 1 of the negatives'.
    """
    whole, won, below = 1.0, 0.0, 0.0
    start = 0
    while start < rows.size:
        up = down = own = 0.0
        stop = start
        while stop < rows.size and scores[rows[stop]] == scores[rows[start]]:
            chance = p[rows[stop], m]
            factor = a * chance + b * (1.0 - chance)
            whole *= factor
            up += chance / factor
            down += (1.0 - chance) / factor
            own += chance * (1.0 - chance) / (factor * factor)
            stop += 1
        won += up * below + 0.5 * (up * down - own)
        below += down
        start = stop
    return won * whole


@kernel
def _gains(
    p: FloatArray, order: IntArray, starts: IntArray, t: FloatArray, w: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Write n_g K_m(g) of every row, and sum n_g P(usable)."""
    M = p.shape[1]
    gains, say = np.zeros(p.shape), np.zeros(M)
    for g in range(starts.size - 1):
        rows = order[starts[g] : starts[g + 1]]
        for m in range(M):
            both = _chance_of_both(p, rows, m)
            if both == 0.0:
                continue
            say[m] += rows.size * both
            gain = 0.0
            for q in range(t.size):
                gain += w[q] * (_left(p, rows, m, t[q], 1.0) + _left(p, rows, m, 1.0, t[q]))
            for row in rows:
                gains[row, m] = gain
    return gains, say


@inline_kernel
def _left(p: Any, rows: Any, m: int, a: float, b: float) -> float:
    """Return the mean over pairs i, j of Π_k≠i,j (a p_k + b q_k)."""
    whole, inverse, square = 1.0, 0.0, 0.0
    for row in rows:
        factor = a * p[row, m] + b * (1.0 - p[row, m])
        whole *= factor
        inverse += 1.0 / factor
        square += 1.0 / (factor * factor)
    mean: float = whole * (inverse * inverse - square) / (rows.size * (rows.size - 1.0))
    return mean
