"""The bootstrap: thousands of reweighted AUCs from one sort per score."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._auc import pair_share
from harmonrank.metrics._concordance import concordance_influence
from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_groups,
    check_labels,
    check_level,
    check_scores,
    check_weights,
    sorting_order,
)
from harmonrank.metrics._intervals import Interval
from harmonrank.metrics._outcomes import Outcomes, each_part
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel


class _Sorted(NamedTuple):
    """The rows in ascending order of one score, laid out once for all replicates."""

    units: IntArray  # which resampled unit (row or request) a row belongs to
    ties: NDArray[np.bool_]  # whether a row has the score of the row before it
    labels: LabelArray
    weights: FloatArray


def bootstrap_areas(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    replicates: int = 200,
    seed: int = 0,
) -> FloatArray:
    """Return each objective's AUC on many resampled logs, (replicates, objectives).

    Each gives every row, or every request of `groups` as a whole, an independent Poisson(1)
    weight: the multinomial bootstrap without its fixed total. Scores keep their order, so one sort
    serves all. An objective that lost a class is nan. A seed stands for the same logs whatever the
    scores, so differences of results are paired.

    >>> labels = np.array([[0, 1], [1, 0]] * 50)
    >>> bootstrap_areas(labels[:, 0], labels, replicates=2)
    array([[1., 0.],
           [1., 0.]])
    """
    if replicates < 2:
        raise UsageError(f"`replicates` must be at least 2, better 200. Got {replicates}.")
    values = check_scores(scores)
    rows = len(values)
    codes, count = check_groups(groups, rows) if groups is not None else (np.arange(rows), rows)
    weights = check_weights(sample_weight, rows)

    def areas(table: LabelArray, some: Any, counts: FloatArray) -> FloatArray:
        layout = _layout(values[some], table, codes[some], counts)
        draws = poisson_weights(count, replicates, seed)
        return np.array([pair_share(*_reweighted_sums(*layout, drawn)) for drawn in draws])

    def plain(table: ArrayLike) -> FloatArray:
        return areas(check_labels(table, rows), slice(None), weights)

    if not isinstance(labels, Outcomes):
        return plain(labels)
    graded = labels.graded

    def special(m: int, shown: IntArray, y: FloatArray, w: FloatArray) -> FloatArray:
        if not graded[m]:
            return areas(y[:, None], shown, w)[:, 0]
        # A concordance of n log n steps for each log would take minutes, so a graded objective is
        # moved by the influences of its rows. The error is of the order 1/n.
        area, influence = concordance_influence(values[shown], y, sample_weight=w)
        units = np.bincount(codes[shown], influence, count) / max(len(shown), 1)
        draws = poisson_weights(count, replicates, seed)
        return np.array([area + (drawn - 1.0) @ units for drawn in draws])

    result = np.empty((replicates, labels.objectives))
    return each_part(labels, sample_weight, plain, special, result)


def percentiles(estimate: float, sums: FloatArray, level: float) -> Interval:
    """Return an estimate with the middle share `level` of its resampled values."""
    tail = 0.5 * (1 - check_level(level))
    sums = sums[~np.isnan(sums)]
    if not sums.size:
        return Interval(estimate, float("nan"), float("nan"), level)
    low, high = np.quantile(sums, [tail, 1 - tail])
    return Interval(estimate, float(low), float(high), level)


def _layout(
    scores: FloatArray, labels: LabelArray, units: IntArray, weights: FloatArray
) -> _Sorted:
    order = sorting_order(scores)
    ordered = scores[order]
    ties = np.zeros(len(order), dtype=np.bool_)
    ties[1:] = ordered[1:] == ordered[:-1]
    weights = weights[order] if weights.size else weights
    return _Sorted(units[order], ties, np.ascontiguousarray(labels[order]), weights)


def poisson_weights(units: int, replicates: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Yield Poisson(1) draws per replicate, by inversion of 32 random bits."""
    rng = np.random.default_rng(seed)
    # Counting the steps of the distribution function below a number inverts it; the 13th step
    # lies beyond 32 bits. This is several times as fast as the generator's own Poisson.
    mass = np.exp(-1) / np.cumprod(np.r_[1.0, np.arange(1, 12)])
    steps = np.round(np.cumsum(mass) * 2**32).clip(max=2**32 - 1).astype(np.uint32)
    for _ in range(replicates):
        yield _count_steps(rng.integers(2**32, size=units, dtype=np.uint32), steps)


@kernel
def _count_steps(bits: NDArray[np.uint32], steps: NDArray[np.uint32]) -> NDArray[np.uint8]:
    counts = np.zeros(bits.size, dtype=np.uint8)
    for step in steps:
        for i in range(bits.size):
            counts[i] += bits[i] >= step
    return counts


@kernel
def _reweighted_sums(
    units: IntArray,
    ties: NDArray[np.bool_],
    labels: LabelArray,
    weights: FloatArray,
    drawn: NDArray[np.uint8],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum w y (R − W/2), w y and w (1−y) up the sorted rows, w the product of both weights."""
    n, objectives = labels.shape
    sums = np.zeros(objectives)
    positive = np.zeros(objectives)
    below = 0.0
    start = 0
    while start < n:
        stop = start
        tied = 0.0
        while stop < n and (stop == start or ties[stop]):
            unit = float(drawn[units[stop]])
            tied += unit if weights.size == 0 else unit * weights[stop]
            stop += 1
        rank = below + 0.5 * tied
        for i in range(start, stop):
            unit = float(drawn[units[i]])
            weight = unit if weights.size == 0 else unit * weights[i]
            for m in range(objectives):
                share = weight * labels[i, m]
                sums[m] += share * rank
                positive[m] += share
        below += tied
        start = stop
    # Centred at the end, as the total is only known there.
    return sums - positive * (0.5 * below), positive, below - positive
