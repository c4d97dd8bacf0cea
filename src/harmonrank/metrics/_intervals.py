"""Confidence intervals of AUCs, of their sum, and of the difference between two fusions."""

__all__ = [
    "Interval",
    "auc_interval",
    "auc_sum_interval",
    "interval_of_sums",
    "objective_weighting",
    "paired_difference",
]

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from harmonrank.metrics._influence import auc_influence
from harmonrank.metrics._inputs import (
    FloatArray,
    check_groups,
    check_level,
    check_paired,
    check_weights,
)
from harmonrank.metrics._outcomes import Outcomes


@dataclass(frozen=True)
class Interval:
    """An estimate and the range that covers the truth in a share `level` of repetitions."""

    estimate: float
    low: float
    high: float
    level: float

    def __str__(self) -> str:
        """Return the range as people read it.

        >>> print(Interval(0.7, 0.65, 0.75, 0.95))
        0.6500 – 0.7500
        """
        return " – ".join("–" if np.isnan(end) else f"{end:.4f}" for end in (self.low, self.high))


def auc_interval(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    *,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[Interval, ...]:
    """Return one interval per objective: AUC ± z √(Σφ²)/n, clipped to [0, 1].

    φ is `auc_influence`. With `groups` (request ids) φ is summed within a request before it is
    squared, since rows of one request are not independent. The sum of squares is scaled by
    G/(G−1), G the number of requests (of rows without groups). A perfect ranking has no spread
    left to measure: its interval has no width and promises too much.

    >>> scores, labels = np.array([0.1, 0.3, 0.2, 0.9]), np.array([[0], [0], [1], [1]])
    >>> (interval,) = auc_interval(scores, labels, level=0.5)
    >>> round(interval.low, 3), interval.estimate, round(interval.high, 3)
    (0.555, 0.75, 0.945)
    """
    area, influence = auc_influence(scores, labels, sample_weight=sample_weight)
    reach = _reach(influence, groups, level)
    low, high = np.clip(area - reach, 0, 1), np.clip(area + reach, 0, 1)
    return tuple(
        Interval(float(a), float(lo), float(hi), level)
        for a, lo, hi in zip(area, low, high, strict=True)
    )


def auc_sum_interval(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    *,
    objective_weights: ArrayLike | None = None,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Interval:
    """Return the interval of Σ_m w_m AUC_m, by the influences summed over objectives.

    The sum is taken per row, so correlations between objectives count. It is nan if an objective
    of non-zero weight has one class only; such an objective can be given the weight 0.

    >>> scores, labels = np.array([0.1, 0.3, 0.2, 0.9]), np.array([[0, 1], [0, 1], [1, 0], [1, 0]])
    >>> interval = auc_sum_interval(scores, labels)
    >>> interval.estimate, round(interval.high - interval.low, 3)
    (1.0, 0.0)
    """
    area, influence = auc_influence(scores, labels, sample_weight=sample_weight)
    weights = objective_weighting(objective_weights, len(area))
    return _interval(_dot(area, weights), _dot(influence, weights), groups, level)


def paired_difference(
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    labels: ArrayLike | Outcomes,
    *,
    objective_weights: ArrayLike | None = None,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Interval:
    """Return the interval of Σ w_m AUC_m(a) − Σ w_m AUC_m(b) on the same rows.

    Influences are subtracted row by row, so what both fusions share cancels; the interval is much
    narrower than two separate ones. If it excludes 0, the fusions differ at this level.

    >>> labels = np.array([0, 0, 1, 1, 0, 1])
    >>> better, worse = np.array([1, 2, 3, 4, 5, 6]), np.array([1, 4, 3, 2, 5, 6])
    >>> round(paired_difference(better, worse, labels).estimate, 4)
    0.2222
    >>> paired_difference(better, better, labels)
    Interval(estimate=0.0, low=0.0, high=0.0, level=0.95)
    """
    check_paired(scores_a, scores_b)
    area_a, influence_a = auc_influence(scores_a, labels, sample_weight=sample_weight)
    area_b, influence_b = auc_influence(scores_b, labels, sample_weight=sample_weight)
    weights = objective_weighting(objective_weights, len(area_a))
    influence_a -= influence_b
    return _interval(_dot(area_a - area_b, weights), _dot(influence_a, weights), groups, level)


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


def _dot(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Sum over the objectives that have a weight, so that a nan of weight 0 stays out."""
    used = weights != 0
    result: FloatArray = values[..., used] @ weights[used]
    return result


def _interval(
    estimate: FloatArray, influence: FloatArray, groups: ArrayLike | None, level: float
) -> Interval:
    reach = float(_reach(influence[:, None], groups, level)[0])
    return Interval(float(estimate), float(estimate) - reach, float(estimate) + reach, level)


def _reach(influence: FloatArray, groups: ArrayLike | None, level: float) -> FloatArray:
    """Return z times the standard error of each column's mean."""
    rows = len(influence)
    units = influence
    if groups is not None:
        codes, count = check_groups(groups, rows)
        columns = [np.bincount(codes, column, count) for column in influence.T]
        units = np.stack(columns, axis=1) if columns else np.empty((count, 0))
    return interval_of_sums((units**2).sum(axis=0), len(units), rows, level)


def interval_of_sums(squares: FloatArray, units: int, rows: int, level: float) -> FloatArray:
    """Return how far intervals reach to either side, by sums of squared influences.

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
