"""How much each row moves the AUC: the influence function, from which errors follow."""

__all__ = ["auc_influence"]

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._auc import mid_ranks
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
from harmonrank.metrics._ranges import influence_within, totals_of, whole_totals


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
    whole = whole_totals([totals_of(ranks, table, weights)])
    return whole.area, influence_within(values, order, ranks, table, weights, whole, 0)


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
