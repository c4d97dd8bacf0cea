"""Confidence intervals of AUCs, of their sum, and of the difference between two fusions.

They follow from how much each row moves an AUC: its influence.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._auc import mid_ranks, pair_share, rank_sums
from harmonrank.metrics._concordance import concordance_influence
from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_groups,
    check_inputs,
    check_level,
    check_paired,
    check_scores,
    check_weights,
    sorting_order,
)
from harmonrank.metrics._outcomes import Outcomes, each_part
from harmonrank.support.kernel import kernel


def auc_influence(
    scores: ArrayLike, labels: ArrayLike | Outcomes, *, sample_weight: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the AUC (M,) and the influence (n, M) of every row on it, from one sort.

    φ_im = v_i [ y_im (V10_im − AUC_m)/π_m + (1−y_im)(V01_im − AUC_m)/(1−π_m) ], where V10 is the
    share of negatives below the row, V01 the share of positives above it (ties one half), π_m
    the prevalence and v = w n/Σw. It is the derivative of the AUC by the weight of a row, times
    n. Hence AUC − E AUC ≈ mean φ and Var AUC_m ≈ Σ_i φ_im²/n².

    On 0/1 labels V10 and V01 are DeLong's structural components, and Σφ²/n² is DeLong's variance
    with 1/n⁺ and 1/n⁻ where he has 1/(n⁺−1) and 1/(n⁻−1). Sums of φ over objectives or over the
    rows of a request give their errors with all correlations kept.

    An objective without a positive or a negative has nan throughout.

    >>> scores, labels = np.array([0.1, 0.3, 0.2, 0.9]), np.array([[0], [0], [1], [1]])
    >>> area, influence = auc_influence(scores, labels)
    >>> area
    array([0.75])
    >>> influence[:, 0]
    array([ 0.5, -0.5, -0.5,  0.5])
    """
    if isinstance(labels, Outcomes):
        return _of_outcomes(check_scores(scores), labels, sample_weight)
    values, table, weights = check_inputs(scores, labels, sample_weight)
    order = sorting_order(values)
    return _influence(values, order, mid_ranks(values, order, weights), table, weights)


def _influence(
    scores: NDArray[Any],
    order: IntArray,
    ranks: FloatArray,
    labels: LabelArray,
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the same of checked rows whose order and `mid_ranks` are known."""
    sums, positive, negative = rank_sums(ranks, labels, weights)
    area = pair_share(sums, positive, negative)
    # Dividing by nan in place of 0 makes the whole objective nan.
    P, N = (np.where(np.isnan(area), np.nan, part) for part in (positive, negative))
    influence: FloatArray = _positive_mid_ranks(scores, order, labels, weights)
    half = 0.5 * (float(weights.sum()) if weights.size else float(len(scores)))
    _mix_components(influence, ranks, half, labels, weights, area, P, N)
    return area, influence


def _of_outcomes(
    scores: NDArray[Any], outcomes: Outcomes, sample_weight: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Return the same of objectives of any kind; a row that does not show one has no influence."""
    n = len(scores)

    def both(area: Any, influence: FloatArray) -> FloatArray:
        return np.concatenate([np.atleast_2d(area), influence])

    def plain(labels: LabelArray) -> FloatArray:
        return both(*auc_influence(scores, labels, sample_weight=sample_weight))

    def special(m: int, rows: IntArray, y: FloatArray, w: FloatArray) -> FloatArray:
        column = np.zeros(n + 1)
        if outcomes.graded[m]:
            column[0], influence = concordance_influence(scores[rows], y, sample_weight=w)
        else:
            area, table = auc_influence(scores[rows], y[:, None], sample_weight=w)
            column[0], influence = area[0], table[:, 0]
        # φ is n times a derivative, and there are n rows here.
        np.add.at(column[1:], rows, influence * (n / max(len(rows), 1)))
        column[1:] += 0 * column[0]  # nan throughout if there is no pair
        return column

    result = np.empty((n + 1, outcomes.objectives))
    each_part(outcomes, sample_weight, plain, special, result)
    return result[0], np.ascontiguousarray(result[1:])


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval at a level."""

    estimate: float
    low: float
    high: float
    level: float

    @classmethod
    def around(cls, estimate: float, reach: float, level: float) -> "Interval":
        """Return the interval that reaches as far to either side."""
        return cls(float(estimate), float(estimate) - reach, float(estimate) + reach, level)

    @classmethod
    def of_parts(
        cls, estimate: float | None, ends: Iterable[float | None] | None, level: float
    ) -> "Interval":
        """Return the interval that `parts` gave; None stands for nan."""
        parts = (estimate, *(ends or (None, None)))
        middle, low, high = (float("nan") if part is None else part for part in parts)
        return cls(middle, low, high, level)

    @property
    def parts(self) -> tuple[float | None, list[float | None]]:
        """Estimate and ends as JSON has them, which knows no nan."""
        estimate, *ends = (None if np.isnan(x) else x for x in (self.estimate, self.low, self.high))
        return estimate, ends

    def __str__(self) -> str:
        """Return the range as people read it.

        >>> print(Interval(0.7, 0.65, 0.75, 0.95))
        0.6500 – 0.7500
        """
        return " – ".join("–" if np.isnan(end) else f"{end:.4f}" for end in (self.low, self.high))


def auc_intervals(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    *,
    objective_weights: ArrayLike | None = None,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[tuple[Interval, ...], Interval]:
    """Return one interval per objective, AUC ± z √(Σφ²)/n in [0, 1], and that of Σ_m w_m AUC_m.

    φ is `auc_influence`. With `groups` (request ids) φ is summed within a request before it is
    squared, since rows of one request are not independent. The sum of squares is scaled by
    G/(G−1), G the number of requests (of rows without groups). A perfect ranking has no spread
    left to measure: its interval has no width and is too narrow.

    The second interval is `auc_sum_interval`. Influences are made an objective at a time, so
    memory does not grow with the number of objectives.

    >>> scores, labels = np.array([0.1, 0.3, 0.2, 0.9]), np.array([[0], [0], [1], [1]])
    >>> (interval,), total = auc_intervals(scores, labels, level=0.5)
    >>> round(interval.low, 3), interval.estimate, round(interval.high, 3)
    (0.555, 0.75, 0.945)
    >>> total.estimate
    0.75
    """
    M, influences = _by_objective(scores, labels, sample_weight)
    weights, rows = objective_weighting(objective_weights, M), np.size(scores)
    codes, units = (None, rows) if groups is None else check_groups(groups, rows)
    area, squares, total = np.empty(M), np.empty(M + 1), np.zeros(units)
    for m, (area[m], influence) in enumerate(influences):
        moved = influence if codes is None else np.bincount(codes, influence, units)
        squares[m] = moved @ moved
        if weights[m]:  # A nan of weight 0 stays out.
            total += weights[m] * moved
    squares[M] = total @ total
    *reach, whole = interval_of_sums(squares, units, rows, level)
    each = tuple(
        Interval(a, float(np.clip(a - r, 0, 1)), float(np.clip(a + r, 0, 1)), level)
        for a, r in zip(area.tolist(), reach, strict=True)
    )
    used = weights != 0
    return each, Interval.around(float(area[used] @ weights[used]), float(whole), level)


def _by_objective(
    scores: ArrayLike, labels: ArrayLike | Outcomes, sample_weight: ArrayLike | None
) -> tuple[int, Iterable[tuple[float, FloatArray]]]:
    """Return M, and the AUC and influences of each objective; of plain events from one sort."""
    if isinstance(labels, Outcomes):
        area, influence = auc_influence(scores, labels, sample_weight=sample_weight)
        return len(area), zip(area, influence.T, strict=True)
    values, table, weights = check_inputs(scores, labels, sample_weight)
    order = sorting_order(values)
    ranks = mid_ranks(values, order, weights)

    def one(m: int) -> tuple[float, FloatArray]:
        column = np.ascontiguousarray(table[:, m : m + 1])
        area, influence = _influence(values, order, ranks, column, weights)
        return float(area[0]), influence[:, 0]

    return table.shape[1], map(one, range(table.shape[1]))


def auc_sum_interval(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    *,
    minus: ArrayLike | None = None,
    objective_weights: ArrayLike | None = None,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Interval:
    """Return the interval of Σ_m w_m AUC_m, by the influences summed over objectives.

    The sum is taken per row, so correlations between objectives count. It is nan if an objective
    of non-zero weight has one class only; such an objective can be given the weight 0.

    With the scores `minus` of another fusion it is the interval of the difference of both sums.
    Influences are subtracted row by row, so what both share cancels; the interval is much narrower
    than two separate ones. If it excludes 0, the fusions differ at this level.

    >>> scores, labels = np.array([0.1, 0.3, 0.2, 0.9]), np.array([[0, 1], [0, 1], [1, 0], [1, 0]])
    >>> interval = auc_sum_interval(scores, labels)
    >>> interval.estimate, round(interval.high - interval.low, 3)
    (1.0, 0.0)
    >>> labels = np.array([0, 0, 1, 1, 0, 1])
    >>> better, worse = np.array([1, 2, 3, 4, 5, 6]), np.array([1, 4, 3, 2, 5, 6])
    >>> round(auc_sum_interval(better, labels, minus=worse).estimate, 4)
    0.2222
    """
    area, influence = auc_influence(scores, labels, sample_weight=sample_weight)
    if minus is not None:
        check_paired(scores, minus)
        other, shared = auc_influence(minus, labels, sample_weight=sample_weight)
        area, influence = area - other, influence - shared
    weights = objective_weighting(objective_weights, len(area))
    # A nan of weight 0 stays out.
    used = weights != 0
    moved = influence[:, used] @ weights[used, None]
    units = moved if groups is None else request_influence(moved, groups)
    reach = interval_of_sums((units**2).sum(axis=0), len(units), len(moved), level)
    return Interval.around(float(area[used] @ weights[used]), float(reach[0]), level)


def objective_weighting(weights: ArrayLike | None, objectives: int) -> FloatArray:
    """Return one weight per objective, ones by default.

    >>> objective_weighting(None, 2)
    array([1., 1.])
    """
    if weights is None:
        return np.ones(objectives)
    values = np.asarray(weights, np.float64)
    # A weight below 0 counts against; sizes are checked as other weights are.
    check_weights(np.abs(values), objectives, "objective_weights")
    return values


def request_influence(influence: FloatArray, groups: ArrayLike) -> FloatArray:
    """Return the sum of `auc_influence` over the rows of each request, (requests, M).

    >>> request_influence(np.array([[1.0], [2.0], [4.0]]), [7, 8, 7])[:, 0]
    array([5., 2.])
    """
    codes, count = check_groups(groups, len(influence))
    columns = [np.bincount(codes, column, count) for column in influence.T]
    return np.stack(columns, axis=1) if columns else np.empty((count, 0))


def interval_of_sums(squares: FloatArray, units: int, rows: int, level: float) -> FloatArray:
    """Return half the width of intervals, given sums of squared influences.

    Args:
        squares: Σ over sampling units of their squared influence.
        units: How many there are.
        rows: How many rows they have.
        level: Of the intervals.
    """
    z = NormalDist().inv_cdf(0.5 + 0.5 * check_level(level))
    if units < 2:
        return np.full(len(squares), np.nan)
    reach: FloatArray = z * np.sqrt(units / (units - 1) * squares) / rows
    return reach


@kernel
def _positive_mid_ranks(
    scores: NDArray[Any], order: IntArray, labels: LabelArray, weights: FloatArray
) -> FloatArray:
    """Return the weight of positives below each row plus half of those tied with it."""
    n, objectives = labels.shape
    ranks = np.empty((n, objectives))
    below = np.zeros(objectives)
    tied = np.zeros(objectives)
    start = 0
    while start < n:
        tied[:] = 0.0
        stop = start
        while stop < n and scores[order[stop]] == scores[order[start]]:
            weight = 1.0 if weights.size == 0 else weights[order[stop]]
            for m in range(objectives):
                tied[m] += weight * labels[order[stop], m]
            stop += 1
        for i in range(start, stop):
            for m in range(objectives):
                ranks[order[i], m] = below[m] + 0.5 * tied[m]
        for m in range(objectives):
            below[m] += tied[m]
        start = stop
    return ranks


@kernel
def _mix_components(
    influence: FloatArray,
    ranks: FloatArray,
    half: float,
    labels: LabelArray,
    weights: FloatArray,
    area: FloatArray,
    P: FloatArray,
    N: FloatArray,
) -> None:
    """Turn the mid-ranks Q among positives into φ, in place."""
    n, objectives = labels.shape
    for i in range(n):
        # v W = w n: the prevalence π = P/W leaves this factor and 1/P, 1/N.
        factor = float(n) if weights.size == 0 else weights[i] * n
        for m in range(objectives):
            y, Q = labels[i, m], influence[i, m]
            V10 = (ranks[i] + half - Q) / N[m]
            V01 = (P[m] - Q) / P[m]
            influence[i, m] = factor * (
                y * (V10 - area[m]) / P[m] + (1.0 - y) * (V01 - area[m]) / N[m]
            )
