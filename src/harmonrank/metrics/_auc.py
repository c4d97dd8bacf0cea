"""The area under the ROC curve of M objectives, from one sort of the fused score."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._concordance import concordance
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


def auc(
    scores: ArrayLike, labels: ArrayLike | Outcomes, *, sample_weight: ArrayLike | None = None
) -> FloatArray:
    """Return the AUC of every objective: the chance that a positive outranks a negative.

    AUC_m = Σ_i w_i y_im (R_i − W/2) / (P_m N_m) + ½, with the weighted mid-rank
    R_i = Σ_{s_j < s_i} w_j + ½ Σ_{s_j = s_i} w_j, W = Σ w, P_m = Σ w y_m and N_m = W − P_m. The
    rank does not depend on the objective, so one sort serves all of them.

    Ties count one half. (The paper's ≥ counts them whole, which rewards a constant score with 1.)
    A label may be a fraction: a row of label p counts as p of a positive and 1−p of a negative.
    With the true probabilities of a world as labels this is the AUC free of label noise.

    Args:
        scores: (n,), finite. Only their order counts.
        labels: (n, M) in [0, 1], of any number type; (n,) gives a float. Of `Outcomes`, graded
            objectives are measured by `concordance`, conditional ones on the rows that show them.
        sample_weight: (n,), not negative; None counts every row once.

    Returns:
        (M,); nan for an objective without a positive or without a negative.

    >>> scores = np.array([0.1, 0.4, 0.4, 0.8])
    >>> labels = np.array([[0, 1], [0, 1], [1, 1], [1, 1]])
    >>> auc(scores, labels)
    array([0.875,   nan])
    >>> float(auc(scores, labels[:, 0], sample_weight=[1, 1, 1, 3]))
    0.9375
    """
    if isinstance(labels, Outcomes):
        return _of_outcomes(check_scores(scores), labels, sample_weight)
    values, table, weights = check_inputs(scores, labels, sample_weight)
    ranks = mid_ranks(values, sorting_order(values), weights)
    result = pair_share(*rank_sums(ranks, table, weights))
    # A numpy scalar is a float and keeps the array's methods.
    return result[0] if np.ndim(labels) == 1 else result


def _of_outcomes(
    scores: NDArray[Any], outcomes: Outcomes, sample_weight: ArrayLike | None
) -> FloatArray:
    def special(m: int, rows: IntArray, y: FloatArray, w: FloatArray) -> float:
        if outcomes.graded[m]:
            return concordance(scores[rows], y, sample_weight=w)
        return float(auc(scores[rows], y, sample_weight=w))

    def plain(labels: LabelArray) -> FloatArray:
        return auc(scores, labels, sample_weight=sample_weight)

    result = np.empty(outcomes.objectives)
    return each_part(outcomes, sample_weight, plain, special, result)


def pair_share(rank_sums: FloatArray, positive: FloatArray, negative: FloatArray) -> FloatArray:
    """Turn Σ w y (R − W/2) into the AUC, nan where there is no pair.

    >>> pair_share(np.array([0.5, 0.0]), np.array([1.0, 0.0]), np.array([1.0, 2.0]))
    array([ 1., nan])
    """
    result = np.full_like(rank_sums, np.nan)
    known = (positive > 0) & (negative > 0)
    # Rounding of weighted sums may leave [0, 1] in the last digit.
    share = rank_sums[known] / positive[known] / negative[known] + 0.5
    result[known] = np.clip(share, 0, 1)
    return result


@kernel
def mid_ranks(scores: NDArray[Any], order: IntArray, weights: FloatArray) -> FloatArray:
    """Return R_i − W/2 per row: centred, so that sums of it stay small; unit weights if empty."""
    n = order.size
    ranks = np.empty(n)
    half = 0.5 * n if weights.size == 0 else 0.5 * weights.sum()
    below = 0.0
    start = 0
    while start < n:
        value = scores[order[start]]
        stop = start
        tied = 0.0
        while stop < n and scores[order[stop]] == value:
            tied += 1.0 if weights.size == 0 else weights[order[stop]]
            stop += 1
        rank = below + 0.5 * tied - half
        for i in range(start, stop):
            ranks[order[i]] = rank
        below += tied
        start = stop
    return ranks


@kernel
def rank_sums(
    ranks: FloatArray, labels: LabelArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum w y (R − W/2), w y and w (1−y) over the rows, in the order in which labels lie."""
    rows, objectives = labels.shape
    sums = np.zeros(objectives)
    positive = np.zeros(objectives)
    negative = np.zeros(objectives)
    for i in range(rows):
        weight = 1.0 if weights.size == 0 else weights[i]
        for m in range(objectives):
            share = weight * labels[i, m]
            sums[m] += share * ranks[i]
            positive[m] += share
            negative[m] += weight - share
    return sums, positive, negative
