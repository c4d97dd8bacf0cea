"""Confidence intervals of AUCs, of their sum, and of the difference between two fusions."""

__all__ = [
    "Interval",
    "auc_interval",
    "auc_sum_interval",
    "interval_of_sums",
    "objective_weighting",
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

    @classmethod
    def around(cls, estimate: float, reach: float, level: float) -> "Interval":
        """Return the interval that reaches as far to either side."""
        return cls(float(estimate), float(estimate) - reach, float(estimate) + reach, level)

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
    reach = _reach(influence[:, used] @ weights[used, None], groups, level)
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
