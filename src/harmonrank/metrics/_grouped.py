"""AUC within requests: whether the fusion orders the candidates that were shown together."""

__all__ = ["GroupedAUC", "each_request", "grouped_auc", "tally"]

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._concordance import request_concordance
from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_inputs,
    check_scores,
    check_weights,
)
from harmonrank.metrics._outcomes import Outcomes
from harmonrank.metrics._requests import request_layout
from harmonrank.support.errors import UsageError, did_you_mean
from harmonrank.support.kernel import kernel

Weighting = Literal["rows", "equal", "pairs"]


@dataclass(frozen=True)
class GroupedAUC:
    """Per-request AUC, averaged; one entry per objective in every array."""

    auc: FloatArray
    requests_used: IntArray
    requests_one_class: IntArray
    requests: int
    weighting: Weighting


def grouped_auc(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    *,
    weighting: Weighting = "rows",
    sample_weight: ArrayLike | None = None,
) -> GroupedAUC:
    """Return Σ_g a_g AUC_gm / Σ_g a_g over the requests g that have an AUC.

    A request whose labels are all of one class has no AUC for that objective: it is left out of
    the mean and counted in `requests_one_class`. An objective without a usable request is nan.
    Ties count one half. Under fractional labels only pairs of different rows count, as a row
    is never shown beside itself.

    Args:
        scores: (n,), finite. Only their order within a request counts.
        labels: (n, M) or (n,), in [0, 1].
        groups: (n,) request ids, integers or strings, in any order.
        weighting: a_g, the say of a request: its "rows" (their sample weights), "equal", or its
            number of "pairs" of a positive with a negative.
        sample_weight: (n,), not negative; None counts every row once.

    >>> result = grouped_auc([1, 2, 3, 1, 2], [0, 1, 0, 0, 1], ["a", "a", "a", "b", "b"])
    >>> result.auc  # request a has 0.5 on three rows, request b has 1 on two
    array([0.7])
    >>> grouped_auc([1, 2, 3], [1, 1, 0], [7, 7, 8]).requests_one_class
    array([2])
    """
    if weighting not in get_args(Weighting):
        hint = did_you_mean(str(weighting), get_args(Weighting))
        raise UsageError(
            f"`weighting` must be 'rows', 'equal' or 'pairs'. Got {weighting!r}. {hint}"
        )
    if isinstance(labels, Outcomes):
        return _of_outcomes(check_scores(scores), labels, groups, weighting, sample_weight)
    values, table, weights = check_inputs(scores, labels, sample_weight)
    order, starts = request_layout(values, groups)
    choice = get_args(Weighting).index(weighting)
    total, say, used = _request_sums(values, order, starts, table, weights, choice)
    area = np.full(len(total), np.nan)
    np.divide(total, say, out=area, where=say > 0)
    requests = len(starts) - 1
    return GroupedAUC(area, used, requests - used, requests, weighting)


def _of_outcomes(
    scores: NDArray[Any],
    outcomes: Outcomes,
    groups: ArrayLike,
    weighting: Weighting,
    sample_weight: ArrayLike | None,
) -> GroupedAUC:
    order, starts = request_layout(scores, groups)
    area, rows, pairs = each_request(scores, order, starts, outcomes, sample_weight)
    say = {"rows": rows, "equal": (pairs > 0).astype(np.float64), "pairs": pairs}[weighting]
    say = np.where(pairs > 0, say, 0.0)
    total = say.sum(axis=0)
    mean = np.full(len(total), np.nan)
    np.divide((say * area).sum(axis=0), total, out=mean, where=total > 0)
    requests, used = len(starts) - 1, (pairs > 0).sum(axis=0)
    return GroupedAUC(mean, used, requests - used, requests, weighting)


def each_request(
    scores: NDArray[Any],
    order: IntArray,
    starts: IntArray,
    outcomes: Outcomes,
    sample_weight: ArrayLike | None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return AUC or concordance, rows and pairs of each request and objective, (requests, M).

    Of the rows of a request those count that show the objective.
    """
    weights = check_weights(sample_weight, len(scores))
    shape = (len(starts) - 1, outcomes.objectives)
    area, rows, pairs = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for m in range(outcomes.objectives):
        w = weights if weights.size else np.ones(len(scores))
        w = w if outcomes.shown is None else w * outcomes.shown[:, m]
        y = outcomes.values[:, m].astype(np.float64)
        count = request_concordance if outcomes.graded[m] else _request_tallies
        area[:, m], rows[:, m], pairs[:, m] = count(scores, order, starts, y, w)
    return area, rows, pairs


@kernel
def _request_tallies(
    scores: NDArray[Any], order: IntArray, starts: IntArray, labels: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    requests, table = starts.size - 1, labels.reshape(-1, 1)
    area, rows, pairs = np.zeros(requests), np.zeros(requests), np.zeros(requests)
    for g in range(requests):
        there = order[starts[g] : starts[g + 1]]
        rows[g] = weights[there].sum()
        won, pairs[g] = tally(scores, there, table, weights, 0)
        if pairs[g] > 0.0:
            area[g] = won / pairs[g]
    return area, rows, pairs


@kernel
def tally(
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


@kernel
def _request_sums(
    scores: NDArray[Any],
    order: IntArray,
    starts: IntArray,
    labels: LabelArray,
    weights: FloatArray,
    choice: int,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Sum a_g AUC_g and a_g over the requests with a pair, and count these."""
    objectives = labels.shape[1]
    total = np.zeros(objectives)
    say = np.zeros(objectives)
    used = np.zeros(objectives, dtype=np.int64)
    for g in range(starts.size - 1):
        rows = order[starts[g] : starts[g + 1]]
        size = float(rows.size) if weights.size == 0 else weights[rows].sum()
        for m in range(objectives):
            won, pairs = tally(scores, rows, labels, weights, m)
            if pairs > 0.0:
                a = size if choice == 0 else (1.0 if choice == 1 else pairs)
                total[m] += a * won / pairs
                say[m] += a
                used[m] += 1
    return total, say, used
