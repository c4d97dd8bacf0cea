"""What the user sees: precision, NDCG and hits among the first k of every request.

Ties in score are broken at random in thought: each figure is its expected value over all orders
of tied candidates, so it depends neither on the row order nor on a seed. A request with fewer
than k candidates shows all it has.
"""

__all__ = ["expected_gains", "hit_at_k", "ndcg_at_k", "precision_at_k"]

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_binary,
    check_labels,
    check_scores,
)
from harmonrank.metrics._requests import request_layout
from harmonrank.support.kernel import kernel
from harmonrank.support.options import checked_whole


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


def _precisions(
    scores: NDArray[Any], order: IntArray, starts: IntArray, labels: LabelArray, k: int
) -> FloatArray:
    shown = np.minimum(k, np.diff(starts))[:, None]
    return expected_gains(scores, order, starts, labels, np.ones(shown.max(initial=0))) / shown


def _ndcgs(
    scores: NDArray[Any], order: IntArray, starts: IntArray, labels: LabelArray, k: int
) -> FloatArray:
    shown = np.minimum(k, np.diff(starts))[:, None]
    discount = 1 / np.log2(np.arange(2.0, 2 + shown.max(initial=0)))
    best = np.r_[0.0, np.cumsum(discount)][np.minimum(_positives(order, starts, labels), shown)]
    figures = expected_gains(scores, order, starts, labels, discount)
    ndcgs: FloatArray = np.divide(figures, best, out=np.full_like(figures, np.nan), where=best > 0)
    return ndcgs


def _hits(
    scores: NDArray[Any], order: IntArray, starts: IntArray, labels: LabelArray, k: int
) -> FloatArray:
    misses = _missed(scores, order, starts, labels, k)
    return np.where(_positives(order, starts, labels) > 0, 1 - misses, np.nan)


def _positives(order: IntArray, starts: IntArray, labels: LabelArray) -> IntArray:
    """Return how many positives each request has, (requests, objectives)."""
    if starts.size == 1:
        return np.zeros((0, labels.shape[1]), np.int64)
    found: IntArray = np.add.reduceat(labels[order] > 0, starts[:-1], axis=0, dtype=np.int64)
    return found


@kernel
def _tie_start(scores: NDArray[Any], order: IntArray, start: int, stop: int) -> int:
    """Return where the candidates tied with the best of order[start:stop] begin."""
    best = scores[order[stop - 1]]
    first = stop - 1
    while first > start and scores[order[first - 1]] == best:
        first -= 1
    return first


@kernel
def expected_gains(
    scores: NDArray[Any],
    order: IntArray,
    starts: IntArray,
    gains: NDArray[Any],
    discount: FloatArray,
) -> FloatArray:
    """Return Σ_j discount_j gain_(j) of every request, (requests, columns of gains).

    As many candidates are shown as there are discounts. Every slot that tied candidates fill holds
    their mean gain.
    """
    found = np.zeros((starts.size - 1, gains.shape[1]))
    for g in range(starts.size - 1):
        stop = starts[g + 1]
        shown = min(discount.size, stop - starts[g])
        place = 0
        while place < shown:
            first = _tie_start(scores, order, starts[g], stop)
            slots = min(shown - place, stop - first)
            weight = discount[place : place + slots].sum() / (stop - first)
            for m in range(gains.shape[1]):
                total = 0.0
                for i in range(first, stop):
                    total += gains[order[i], m]
                found[g, m] += weight * total
            place += slots
            stop = first
    return found


@kernel
def _missed(
    scores: NDArray[Any], order: IntArray, starts: IntArray, labels: LabelArray, k: int
) -> FloatArray:
    """Return the chance that no positive of a request is among its first k."""
    misses = np.ones((starts.size - 1, labels.shape[1]))
    for g in range(starts.size - 1):
        stop = starts[g + 1]
        left = min(k, stop - starts[g])
        while left > 0:
            first = _tie_start(scores, order, starts[g], stop)
            slots = min(left, stop - first)
            for m in range(labels.shape[1]):
                negatives = 0
                for i in range(first, stop):
                    negatives += labels[order[i], m] == 0
                # The chance that `slots` draws of the tied candidates are all negatives.
                for j in range(slots):
                    misses[g, m] *= max(0, negatives - j) / (stop - first - j)
            left -= slots
            stop = first
    return misses
