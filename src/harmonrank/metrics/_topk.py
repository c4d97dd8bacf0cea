"""What the user sees: precision, NDCG and hits among the first k of every request.

Ties in score are broken at random in thought: each figure is its expected value over all orders
of tied candidates, so it depends neither on the row order nor on a seed. A request with fewer
than k candidates shows all it has.
"""

__all__ = ["hit_at_k", "ndcg_at_k", "precision_at_k", "tie_start"]

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.kernel import kernel
from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_binary,
    check_labels,
    check_scores,
)
from harmonrank.metrics._requests import request_layout
from harmonrank.options import checked_whole


def precision_at_k(scores: ArrayLike, labels: ArrayLike, groups: ArrayLike, k: int) -> FloatArray:
    """Return, per objective, the share of positives among the first k, averaged over requests.

    A request of n < k candidates is divided by n. A request without a positive counts as 0. The
    result is nan only if there is no request.

    >>> scores, groups = [3, 2, 1, 9], ["a", "a", "a", "b"]
    >>> precision_at_k(scores, [1, 0, 1, 1], groups, k=2)
    array([0.75])
    """
    return _mean_over_requests(_precisions, scores, labels, groups, k)


def ndcg_at_k(scores: ArrayLike, labels: ArrayLike, groups: ArrayLike, k: int) -> FloatArray:
    """Return, per objective, Σ_{j ≤ k} y_(j)/log2(j+1) over its best value, averaged over requests.

    Requests without a positive have no best value and are left out; nan if none remains.

    >>> ndcg_at_k([3, 2, 1, 9], [0, 1, 0, 0], ["a", "a", "a", "b"], k=2).round(4)
    array([0.6309])
    """
    return _mean_over_requests(_ndcgs, scores, labels, groups, k)


def hit_at_k(scores: ArrayLike, labels: ArrayLike, groups: ArrayLike, k: int) -> FloatArray:
    """Return, per objective, the share of requests with a positive among their first k.

    Requests without a positive cannot be hit and are left out; nan if none remains.

    >>> hit_at_k([3, 2, 1, 2, 1], [0, 0, 1, 1, 0], ["a", "a", "a", "b", "b"], k=2)
    array([0.5])
    >>> hit_at_k([1, 1, 1, 1], [0, 0, 0, 1], [5, 5, 5, 5], k=2)  # all tied: a chance of 2 in 4
    array([0.5])
    """
    return _mean_over_requests(_hits, scores, labels, groups, k)


def _mean_over_requests(
    figure: Callable[..., FloatArray],
    scores: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike,
    k: int,
) -> FloatArray:
    """Average a figure (requests, objectives) over the requests where it is not nan."""
    k = checked_whole("k", k, least=1)
    values = check_scores(scores)
    table = check_labels(labels, len(values))
    check_binary(table)
    order, starts = request_layout(values, groups)
    figures = figure(values, order, starts, table, k)
    known = ~np.isnan(figures)
    mean = np.full(table.shape[1], np.nan)
    total, count = np.where(known, figures, 0).sum(axis=0), known.sum(axis=0)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


@kernel
def tie_start(scores: NDArray[Any], order: IntArray, start: int, stop: int) -> int:
    """Return where the candidates tied with the best of order[start:stop] begin."""
    best = scores[order[stop - 1]]
    first = stop - 1
    while first > start and scores[order[first - 1]] == best:
        first -= 1
    return first


@kernel
def _positives(labels: LabelArray, order: IntArray, start: int, stop: int, m: int) -> int:
    count = 0
    for i in range(start, stop):
        count += labels[order[i], m] > 0
    return count


@kernel
def _precisions(
    scores: NDArray[Any], order: IntArray, starts: IntArray, labels: LabelArray, k: int
) -> FloatArray:
    figures = np.zeros((starts.size - 1, labels.shape[1]))
    for g in range(starts.size - 1):
        stop = starts[g + 1]
        shown = min(k, stop - starts[g])
        left = shown
        while left > 0:
            first = tie_start(scores, order, starts[g], stop)
            # Of t tied candidates `slots` are shown, so each is with probability slots/t.
            slots = min(left, stop - first)
            for m in range(labels.shape[1]):
                hits = _positives(labels, order, first, stop, m)
                figures[g, m] += hits * (slots / (stop - first)) / shown
            left -= slots
            stop = first
    return figures


@kernel
def _ndcgs(
    scores: NDArray[Any], order: IntArray, starts: IntArray, labels: LabelArray, k: int
) -> FloatArray:
    figures = np.zeros((starts.size - 1, labels.shape[1]))
    for g in range(starts.size - 1):
        stop = starts[g + 1]
        shown = min(k, stop - starts[g])
        place = 0
        while place < shown:
            first = tie_start(scores, order, starts[g], stop)
            slots = min(shown - place, stop - first)
            discount = 0.0
            for j in range(place, place + slots):
                discount += 1.0 / np.log2(j + 2.0)
            # Every slot holds the mean label of the tied candidates.
            for m in range(labels.shape[1]):
                hits = _positives(labels, order, first, stop, m)
                figures[g, m] += discount * hits / (stop - first)
            place += slots
            stop = first
        for m in range(labels.shape[1]):
            positives = _positives(labels, order, starts[g], starts[g + 1], m)
            best = 0.0
            for j in range(min(positives, shown)):
                best += 1.0 / np.log2(j + 2.0)
            figures[g, m] = figures[g, m] / best if best > 0.0 else np.nan
    return figures


@kernel
def _hits(
    scores: NDArray[Any], order: IntArray, starts: IntArray, labels: LabelArray, k: int
) -> FloatArray:
    objectives = labels.shape[1]
    figures = np.zeros((starts.size - 1, objectives))
    for g in range(starts.size - 1):
        misses = np.ones(objectives)
        stop = starts[g + 1]
        left = min(k, stop - starts[g])
        while left > 0:
            first = tie_start(scores, order, starts[g], stop)
            slots = min(left, stop - first)
            for m in range(objectives):
                hits = _positives(labels, order, first, stop, m)
                # The chance that `slots` draws of the tied candidates all miss.
                for j in range(slots):
                    misses[m] *= max(0, stop - first - hits - j) / (stop - first - j)
            left -= slots
            stop = first
        for m in range(objectives):
            if _positives(labels, order, starts[g], starts[g + 1], m) > 0:
                figures[g, m] = 1.0 - misses[m]
            else:
                figures[g, m] = np.nan
    return figures
