"""How much each row moves the AUC: the influence function, from which errors follow."""

__all__ = ["auc_influence"]

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.kernel import kernel
from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_labels,
    check_scores,
    check_weights,
    sorting_order,
)


def auc_influence(
    scores: ArrayLike, labels: ArrayLike, *, sample_weight: ArrayLike | None = None
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
    values = check_scores(scores)
    table = check_labels(labels, len(values))
    weights = check_weights(sample_weight, len(values))
    positive, negative = _class_sums(table, weights)
    influence = np.full(table.shape, np.nan)
    area = np.full(table.shape[1], np.nan)
    known = (positive > 0) & (negative > 0)
    if known.any():
        order = sorting_order(values)
        _fill_influence(values, order, table, weights, positive, negative, area, influence)
        area[~known] = np.nan
        influence[:, ~known] = np.nan
    return np.clip(area, 0, 1), influence


@kernel
def _class_sums(labels: LabelArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sum w y and w (1−y) per objective; the second is exactly 0 without a negative."""
    rows, objectives = labels.shape
    positive = np.zeros(objectives)
    negative = np.zeros(objectives)
    for i in range(rows):
        weight = 1.0 if weights.size == 0 else weights[i]
        for m in range(objectives):
            share = weight * labels[i, m]
            positive[m] += share
            negative[m] += weight - share
    return positive, negative


@kernel
def _fill_influence(
    scores: NDArray[Any],
    order: IntArray,
    labels: LabelArray,
    weights: FloatArray,
    positive: FloatArray,
    negative: FloatArray,
    area: FloatArray,
    influence: FloatArray,
) -> None:
    """Write V10 and V01 mixed by label in one pass up the scores, then subtract the AUC."""
    n, objectives = labels.shape
    positive_below = np.zeros(objectives)
    negative_below = np.zeros(objectives)
    tied_positive = np.zeros(objectives)
    tied_negative = np.zeros(objectives)
    # One over zero is kept out: such objectives are overwritten with nan by the caller.
    P = np.where(positive > 0, positive, 1.0)
    N = np.where(negative > 0, negative, 1.0)
    area[:] = 0.0
    start = 0
    while start < n:
        value = scores[order[start]]
        tied_positive[:] = 0.0
        tied_negative[:] = 0.0
        stop = start
        while stop < n and scores[order[stop]] == value:
            row = order[stop]
            weight = 1.0 if weights.size == 0 else weights[row]
            for m in range(objectives):
                share = weight * labels[row, m]
                tied_positive[m] += share
                tied_negative[m] += weight - share
            stop += 1
        for m in range(objectives):
            V10 = (negative_below[m] + 0.5 * tied_negative[m]) / N[m]
            V01 = (positive[m] - positive_below[m] - 0.5 * tied_positive[m]) / P[m]
            area[m] += tied_positive[m] * V10 / P[m]
            for i in range(start, stop):
                y = labels[order[i], m]
                influence[order[i], m] = y * V10 / P[m] + (1.0 - y) * V01 / N[m]
            positive_below[m] += tied_positive[m]
            negative_below[m] += tied_negative[m]
        start = stop
    total = float(n) if weights.size == 0 else weights.sum()
    for i in range(n):
        # v W/P = v/π: the weight enters once, as the derivative's own factor.
        scale = total if weights.size == 0 else weights[i] * n
        for m in range(objectives):
            y = labels[i, m]
            centre = area[m] * (y / P[m] + (1.0 - y) / N[m])
            influence[i, m] = scale * (influence[i, m] - centre)
