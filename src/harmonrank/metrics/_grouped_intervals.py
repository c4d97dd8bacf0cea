"""Intervals of per-request AUC and of its weighted sum: requests are the sampling unit."""

__all__ = ["RequestMoments", "grouped_auc_intervals", "request_moments"]

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._grouped import each_request, tally
from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_inputs,
    check_level,
    check_scores,
)
from harmonrank.metrics._intervals import Interval, objective_weighting
from harmonrank.metrics._outcomes import Outcomes
from harmonrank.metrics._requests import request_layout
from harmonrank.support.kernel import kernel


def grouped_auc_intervals(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    *,
    objective_weights: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> tuple[tuple[Interval, ...], Interval]:
    """Return an interval per objective of `grouped_auc`, by rows, and one of Σ_m w_m of them.

    The mean G = Σ_g a_g AUC_g/Σ_g a_g, eq. 1 of docs/per-request.md, is a ratio of two sums over
    requests, so request g moves it by a_g (AUC_g − G)/Σ a; the squares of these add up to its
    variance, times G/(G − 1) for G usable requests. Moves are added over objectives before they
    are squared, so that their correlations count. An objective without a usable request is nan,
    and so is the sum.

    >>> each, total = grouped_auc_intervals([1, 2, 2, 1], [0, 1, 0, 1], [1, 1, 2, 2])
    >>> each[0].estimate, total.estimate
    (0.5, 0.5)
    """
    if isinstance(labels, Outcomes):
        values = check_scores(scores)
        order, starts = request_layout(values, groups)
        area, rows, pairs = each_request(values, order, starts, labels, sample_weight)
        say = np.where(pairs > 0, rows, 0.0)
    else:
        values, table, weights = check_inputs(scores, labels, sample_weight)
        order, starts = request_layout(values, groups)
        area, say = _each_request(values, order, starts, table, weights)  # (requests, M)
    total = say.sum(axis=0)
    mean = np.full(len(total), np.nan)
    np.divide((say * area).sum(axis=0), total, out=mean, where=total > 0)
    moves = say * (area - mean) / np.where(total > 0, total, np.nan)
    used = (say > 0).sum(axis=0)
    w = objective_weighting(objective_weights, len(mean))
    counted = w != 0
    z = NormalDist().inv_cdf(0.5 + 0.5 * check_level(level))
    each = tuple(
        _interval(float(mean[m]), moves[:, m], int(used[m]), z, level) for m in range(len(mean))
    )
    whole = moves[:, counted] @ w[counted]
    least = int(used[counted].min(initial=len(moves)))
    return each, _interval(float(mean[counted] @ w[counted]), whole, least, z, level)


def _interval(estimate: float, moves: FloatArray, used: int, z: float, level: float) -> Interval:
    return _of_squares(estimate, float((moves**2).sum()), used, z, level)


@dataclass(frozen=True)
class RequestMoments:
    """Sums over requests from which `grouped_auc_intervals` follows; those of others can be added.

    Attributes:
        used: (M,) requests with an AUC.
        first: (2M,) Σ_g v_g, where v_g has a_g AUC_g of every objective, then a_g of each.
        second: (2M, 2M) Σ_g v_g v_gᵀ.
    """

    used: IntArray
    first: FloatArray
    second: FloatArray

    def __add__(self, other: Self) -> "RequestMoments":
        return RequestMoments(
            self.used + other.used, self.first + other.first, self.second + other.second
        )

    def intervals(
        self, objective_weights: ArrayLike | None = None, level: float = 0.95
    ) -> tuple[tuple[Interval, ...], Interval]:
        """Return the intervals, up to rounding.

        Request g moves the mean of objective m by (v_gm − mean_m v_g,M+m)/Σ a, which is linear in
        v_g, so that sums of squared moves are quadratic in the second moments.
        """
        M = len(self.used)
        total = np.where(self.first[M:] > 0, self.first[M:], np.nan)
        mean = self.first[:M] / total
        moves = np.hstack([np.eye(M), -np.diag(np.nan_to_num(mean))]) / total[:, None]  # (M, 2M)
        w = objective_weighting(objective_weights, M)
        counted = w != 0
        z = NormalDist().inv_cdf(0.5 + 0.5 * check_level(level))
        whole = w[counted] @ moves[counted]
        squares = [float(move @ self.second @ move) for move in (*moves, whole)]
        each = tuple(
            _of_squares(float(mean[m]), squares[m], int(self.used[m]), z, level) for m in range(M)
        )
        least = int(self.used[counted].min(initial=int(self.used.max(initial=0))))
        estimate = float(mean[counted] @ w[counted])
        return each, _of_squares(estimate, squares[-1], least, z, level)


def request_moments(
    scores: ArrayLike, labels: ArrayLike, groups: ArrayLike, sample_weight: ArrayLike | None = None
) -> RequestMoments:
    """Return the sums over requests that are whole.

    >>> one = request_moments([1, 2], [0, 1], [1, 1])
    >>> each, _ = (one + request_moments([2, 1], [0, 1], [2, 2])).intervals()
    >>> each[0].estimate
    0.5
    """
    values, table, weights = check_inputs(scores, labels, sample_weight)
    order, starts = request_layout(values, groups)
    area, say = _each_request(values, order, starts, table, weights)
    v = np.hstack([say * area, say])
    return RequestMoments((say > 0).sum(axis=0), v.sum(axis=0), v.T @ v)


def _of_squares(estimate: float, squares: float, used: int, z: float, level: float) -> Interval:
    if used < 2:
        return Interval(estimate, np.nan, np.nan, level)
    reach = z * float(np.sqrt(used / (used - 1) * max(squares, 0.0)))
    return Interval(estimate, estimate - reach, estimate + reach, level)


@kernel
def _each_request(
    scores: NDArray[Any],
    order: IntArray,
    starts: IntArray,
    labels: LabelArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return AUC and weight of every request and objective, 0 and 0 where there is no AUC."""
    requests, M = starts.size - 1, labels.shape[1]
    area, say = np.zeros((requests, M)), np.zeros((requests, M))
    for g in range(requests):
        rows = order[starts[g] : starts[g + 1]]
        size = float(rows.size) if weights.size == 0 else weights[rows].sum()
        for m in range(M):
            won, pairs = tally(scores, rows, labels, weights, m)
            if pairs > 0.0:
                area[g, m], say[g, m] = won / pairs, size
    return area, say
