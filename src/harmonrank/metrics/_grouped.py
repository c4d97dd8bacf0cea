"""AUC within requests: whether the fusion orders the candidates of one request.

Requests are the sampling unit of its intervals.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._concordance import request_concordance
from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_groups,
    check_labels,
    check_scores,
    check_weights,
    request_layout,
)
from harmonrank.metrics._intervals import Interval, interval_of_sums, objective_weighting
from harmonrank.metrics._outcomes import Outcomes
from harmonrank.support.kernel import kernel


def grouped_auc(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Return Σ_g a_g AUC_gm / Σ_g a_g over the requests g that have an AUC, a_g their rows; (M,).

    A request whose labels are all of one class has no AUC for that objective and is left out of the
    mean. An objective without a usable request is nan. Ties count one half. With fractional labels
    only pairs of different rows count.

    Args:
        scores: (n,), finite. Only their order within a request counts.
        labels: (n, M) or (n,), in [0, 1].
        groups: (n,) request ids, integers or strings, in any order.
        sample_weight: (n,), not negative, what each row counts; None counts every row once.

    >>> grouped_auc([1, 2, 3, 1, 2], [0, 1, 0, 0, 1], ["a", "a", "a", "b", "b"])
    array([0.7])
    """
    return _mean_by_rows(*request_areas(scores, labels, groups, sample_weight))[0]


def _mean_by_rows(
    area: FloatArray, rows: FloatArray, pairs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the mean (M,) and the share of each request in it, (requests, M)."""
    say = np.where(pairs > 0, rows, 0.0)
    total = say.sum(axis=0)
    total[total == 0] = np.nan
    return (say * area).sum(axis=0) / total, say / total


def grouped_auc_intervals(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    *,
    objective_weights: ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    units: ArrayLike | None = None,
) -> tuple[tuple[Interval, ...], Interval]:
    """Return an interval per objective of `grouped_auc`, by rows, and one of Σ_m w_m of them.

    The mean G = Σ_g a_g AUC_g/Σ_g a_g, eq. 1 of docs/per-request.md, is a ratio of two sums over
    requests, so request g moves it by a_g (AUC_g − G)/Σ a; the squares of these add up to its
    variance, times G/(G − 1) for G usable requests. Moves are added over objectives before they
    are squared, so that their correlations count; where `units` are users, over their requests
    too. An objective without a usable request is nan, and so is the sum.

    >>> each, total = grouped_auc_intervals([1, 2, 2, 1], [0, 1, 0, 1], [1, 1, 2, 2])
    >>> each[0].estimate, total.estimate
    (0.5, 0.5)
    """
    mean, moves = grouped_auc_influence(
        scores, labels, groups, sample_weight=sample_weight, units=units
    )
    used = (~np.isnan(moves)).sum(axis=0)
    w = objective_weighting(objective_weights, len(mean))
    counted = w != 0
    moves = np.nan_to_num(moves)
    whole = moves[:, counted] @ w[counted]
    squares = (moves**2).sum(axis=0)
    each = tuple(map(_interval, mean.tolist(), squares, used.tolist(), [level] * len(mean)))
    least = int(used[counted].min(initial=int(used.max(initial=0))))
    return each, _interval(float(mean[counted] @ w[counted]), whole @ whole, least, level)


def grouped_auc_influence(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    units: ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return `grouped_auc` by rows (M,), and how far each request moves it, (requests, M).

    A request moves it by a_g (AUC_g − G)/Σ a. Which requests have an AUC depends on the labels
    alone, so moves under two scores of the same rows can be subtracted request by request: what
    both scores share cancels. A request without an AUC moves nothing and has nan. With `units`,
    such as the user of each row, it is how far each of them moves it with all its requests.

    >>> area, moves = grouped_auc_influence([1, 2, 2, 1, 1], [0, 1, 0, 1, 1], [1, 1, 2, 2, 3])
    >>> area, moves[:, 0]
    (array([0.5]), array([ 0.25, -0.25,   nan]))
    """
    area, rows, pairs = request_areas(scores, labels, groups, sample_weight)
    mean, share = _mean_by_rows(area, rows, pairs)
    share = np.nan_to_num(share)
    moves = unit_sums(share * (area - np.nan_to_num(mean)), groups, units)
    return mean, np.where(unit_sums(share, groups, units) > 0, moves, np.nan)


def unit_sums(of_request: FloatArray, groups: ArrayLike, units: ArrayLike | None) -> FloatArray:
    """Return sums over the requests of each unit, (units, …).

    Args:
        of_request: (requests, …) in the order of their ids.
        groups: (n,) the request of each row.
        units: (n,) the unit of each row, such as its user; requests themselves if left out.

    >>> unit_sums(np.array([1.0, 2.0, 4.0]), [7, 7, 8, 9], ["a", "a", "b", "a"])
    array([5., 2.])
    """
    if units is None:
        return of_request
    order, starts = request_layout(np.empty(np.shape(groups)), groups)
    codes, count = check_groups(units, len(order))
    sums = np.zeros((count, *of_request.shape[1:]))
    np.add.at(sums, codes[order[starts[:-1]]], of_request)
    return sums


def _interval(estimate: float, squares: float, used: int, level: float) -> Interval:
    reach = interval_of_sums(np.array([squares]), used, 1, level)
    return Interval.around(estimate, float(reach[0]), level)


def request_areas(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return AUC or concordance, rows and pairs of each request and objective, (requests, M).

    The AUC is 0 where there is no pair. Only rows that show the objective count.
    """
    values = check_scores(scores)
    if not isinstance(labels, Outcomes):
        table, weights = (
            check_labels(labels, len(values)),
            check_weights(sample_weight, len(values)),
        )
        all_at_once: tuple[FloatArray, FloatArray, FloatArray] = _tallies(
            values, *request_layout(values, groups), table, weights
        )
        return all_at_once
    layout, weights = request_layout(values, groups), check_weights(sample_weight, len(values))
    area, rows, pairs = np.zeros((3, len(layout.starts) - 1, labels.objectives))
    for m in range(labels.objectives):
        w = weights if weights.size else np.ones(len(values))
        w = w if labels.shown is None else w * labels.shown[:, m]
        y = labels.values[:, [m]].astype(np.float64)
        count = request_concordance if labels.graded[m] else _tallies
        area[:, [m]], rows[:, [m]], pairs[:, [m]] = count(values, *layout, y, w)
    return area, rows, pairs


@kernel
def _tallies(
    scores: NDArray[Any], order: IntArray, starts: IntArray, labels: LabelArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    requests, M = starts.size - 1, labels.shape[1]
    area, size, pairs = np.zeros((requests, M)), np.zeros((requests, M)), np.zeros((requests, M))
    for g in range(requests):
        rows = order[starts[g] : starts[g + 1]]
        size[g] = float(rows.size) if weights.size == 0 else weights[rows].sum()
        for m in range(M):
            won, pairs[g, m] = _tally(scores, rows, labels, weights, m)
            if pairs[g, m] > 0.0:
                area[g, m] = won / pairs[g, m]
    return area, size, pairs


@kernel
def _tally(
    scores: NDArray[Any], rows: IntArray, labels: LabelArray, weights: FloatArray, m: int
) -> tuple[float, float]:
    """Return the pairs won and all pairs of one objective among the rows of one request."""
    won = positive = negative = own = 0.0
    start = 0
    while start < rows.size:
        tied_positive = tied_negative = 0.0
        stop = start
        while stop < rows.size and scores[rows[stop]] == scores[rows[start]]:
            weight = 1.0 if weights.size == 0 else weights[rows[stop]]
            share = weight * labels[rows[stop], m]
            tied_positive += share
            tied_negative += weight - share
            # A row's pair with itself: 0 unless its label is a fraction.
            own += share * (weight - share)
            stop += 1
        won += tied_positive * (negative + 0.5 * tied_negative)
        positive += tied_positive
        negative += tied_negative
        start = stop
    # One row alone has no pair, whatever rounding says.
    return won - 0.5 * own, positive * negative - own if rows.size > 1 else 0.0
