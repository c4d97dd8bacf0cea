"""How much each row moves the AUC: the influence function, from which errors follow."""

__all__ = ["auc_influence"]

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._auc import mid_ranks, pair_share, rank_sums
from harmonrank.metrics._concordance import concordance_influence
from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_inputs,
    check_scores,
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
    ranks = mid_ranks(values, order, weights)
    sums, positive, negative = rank_sums(ranks, table, weights)
    area = pair_share(sums, positive, negative)
    # Dividing by nan in place of 0 makes the whole objective nan.
    P, N = np.where(np.isnan(area), np.nan, positive), np.where(np.isnan(area), np.nan, negative)
    influence = _positive_mid_ranks(values, order, table, weights)
    _mix_components(influence, ranks, table, weights, area, P, N)
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
        found = np.zeros(n + 1)
        if outcomes.graded[m]:
            found[0], influence = concordance_influence(scores[rows], y, sample_weight=w)
        else:
            area, table = auc_influence(scores[rows], y[:, None], sample_weight=w)
            found[0], influence = area[0], table[:, 0]
        # φ is n times a derivative, and there are n rows here.
        np.add.at(found[1:], rows, influence * (n / max(len(rows), 1)))
        found[1:] += 0 * found[0]  # nan throughout if there is no pair
        return found

    result = np.empty((n + 1, outcomes.objectives))
    each_part(outcomes, sample_weight, plain, special, result)
    return result[0], np.ascontiguousarray(result[1:])


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
    labels: LabelArray,
    weights: FloatArray,
    area: FloatArray,
    P: FloatArray,
    N: FloatArray,
) -> None:
    """Turn the mid-ranks Q among positives into φ, in place."""
    n, objectives = labels.shape
    W = float(n) if weights.size == 0 else weights.sum()
    for i in range(n):
        # v W = w n: the prevalence π = P/W leaves this factor and 1/P, 1/N.
        factor = float(n) if weights.size == 0 else weights[i] * n
        for m in range(objectives):
            y, Q = labels[i, m], influence[i, m]
            V10 = (ranks[i] + 0.5 * W - Q) / N[m]
            V01 = (P[m] - Q) / P[m]
            influence[i, m] = factor * (
                y * (V10 - area[m]) / P[m] + (1.0 - y) * (V01 - area[m]) / N[m]
            )
