"""Concordance: AUC for labels that are numbers, by counting pairs in n log n steps."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    check_scores,
    check_weights,
    sorting_order,
)
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel


def concordance(
    scores: ArrayLike, labels: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Return the chance that of two rows with different labels the larger one has more score.

    C = Σ w_i w_j (1[s_i > s_j] + ½ 1[s_i = s_j]) / Σ w_i w_j over the pairs with y_i > y_j: eq. 3
    of docs/objectives.md. It is the AUC where labels are 0 and 1, and (1 + τ)/2 with Kendall's τ
    where nothing is tied. Only the order of scores and of labels counts. nan without such a pair.

    Args:
        scores: (n,), finite.
        labels: (n,), finite numbers such as seconds or stars.
        sample_weight: (n,), not negative; None counts every row once.

    >>> concordance([0.1, 0.5, 0.4, 0.9], [0, 20, 31, 31])
    0.8
    """
    return concordance_influence(scores, labels, sample_weight=sample_weight)[0]


def concordance_influence(
    scores: ArrayLike, labels: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> tuple[float, FloatArray]:
    """Return the concordance and the influence φ (n,) of every row on it.

    With A_i the weight of rows that row i is rightly ordered to, ties one half, and T_i that of all
    rows with another label, C = Σ w A/Σ w T and φ_i = 2 n w_i (A_i − C T_i)/Σ w T: eq. 4 of
    docs/objectives.md. On 0/1 labels it is `auc_influence`.

    >>> area, influence = concordance_influence([0.1, 0.3, 0.2, 0.9], [0, 0, 1, 1])
    >>> area, influence
    (0.75, array([ 0.5, -0.5, -0.5,  0.5]))
    """
    values = check_scores(scores)
    y = check_scores(labels, "labels")
    if y.shape != values.shape:
        raise UsageError(f"`labels` must have one number per score, {values.shape}. Got {y.shape}.")
    given = check_weights(sample_weight, len(values))
    weights = given if given.size else np.ones(len(values))
    levels, code = np.unique(y, return_inverse=True)
    right = _right(values, sorting_order(values), code.reshape(-1), weights, len(levels))
    same = np.bincount(code.reshape(-1), weights, len(levels))
    other = weights.sum() - same[code.reshape(-1)]
    pairs = float(weights @ other)
    if not pairs > 0:
        return float("nan"), np.full(len(values), np.nan)
    area = float(weights @ right) / pairs
    influence: FloatArray = (2 * len(values) / pairs) * weights * (right - area * other)
    # Rounding of weighted sums may leave [0, 1] in the last digit.
    return min(max(area, 0.0), 1.0), influence


@kernel
def _right(
    scores: NDArray[Any], order: IntArray, code: IntArray, weights: FloatArray, levels: int
) -> FloatArray:
    """Return the weight of rows that each row is rightly ordered to, tied scores one half.

    Two Fenwick trees over the levels of the labels, filled from the lowest score up: `below` holds
    rows of lower scores, of which those with lower labels are right; what is not in `upto` has a
    higher score, of which those with higher labels are.
    """
    n = order.size
    right = np.zeros(n)
    below, upto = np.zeros(levels + 1), np.zeros(levels + 1)
    whole = np.zeros(levels + 1)
    tied = np.zeros(levels)
    for i in range(n):
        _add(whole, code[i], weights[i])
    start = 0
    while start < n:
        stop, mass = start, 0.0
        while stop < n and scores[order[stop]] == scores[order[start]]:
            row = order[stop]
            _add(upto, code[row], weights[row])
            tied[code[row]] += weights[row]
            mass += weights[row]
            stop += 1
        all_upto = _sum(upto, levels)
        all_whole = _sum(whole, levels)
        for k in range(start, stop):
            row = order[k]
            c = code[row]
            lower = _sum(below, c)
            not_higher = _sum(whole, c + 1) - _sum(upto, c + 1)
            higher = (all_whole - all_upto) - not_higher
            right[row] = lower + higher + 0.5 * (mass - tied[c])
        for k in range(start, stop):
            row = order[k]
            _add(below, code[row], weights[row])
            tied[code[row]] = 0.0
        start = stop
    return right


@kernel
def _add(tree: FloatArray, place: int, weight: float) -> None:
    """Add a weight at a place from 0 up."""
    i = place + 1
    while i < tree.size:
        tree[i] += weight
        i += i & -i


@kernel
def _sum(tree: FloatArray, slots: int) -> float:
    """Return the weight of the first so many slots."""
    total = 0.0
    i = slots
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@kernel
def request_concordance(
    scores: NDArray[Any], order: IntArray, starts: IntArray, labels: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the concordance of each request, its rows and its pairs; 0 where there is no pair.

    Labels, (n, 1), and what is returned, (requests, 1), have one column. Pairs are counted one by
    one, as requests are small.
    """
    requests = starts.size - 1
    area, rows, pairs = np.zeros((requests, 1)), np.zeros((requests, 1)), np.zeros((requests, 1))
    for g in range(requests):
        won = 0.0
        for a in range(starts[g], starts[g + 1]):
            i = order[a]
            rows[g, 0] += weights[i]
            for b in range(starts[g], a):
                j = order[b]
                if labels[i, 0] == labels[j, 0]:
                    continue
                both = weights[i] * weights[j]
                pairs[g, 0] += both
                if scores[i] == scores[j]:
                    won += 0.5 * both
                elif (scores[i] > scores[j]) == (labels[i, 0] > labels[j, 0]):
                    won += both
        if pairs[g, 0] > 0.0:
            area[g, 0] = won / pairs[g, 0]
    return area, rows, pairs
