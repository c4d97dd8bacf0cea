"""Figures of the first places of requests: discounts of places, events at k and their value.

Tied candidates share their places, so a figure is its expected value over all orders of them. It
depends neither on the row order nor on a seed. A request with fewer than k candidates shows all of
them.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._bootstrap import poisson_weights
from harmonrank.metrics._grouped import unit_sums
from harmonrank.metrics._inputs import (
    FloatArray,
    IntArray,
    LabelArray,
    check_labels,
    check_scores,
    check_weights,
    request_layout,
)
from harmonrank.metrics._outcomes import Outcomes
from harmonrank.support.errors import DataError
from harmonrank.support.kernel import kernel
from harmonrank.support.options import checked_whole


def place_gains(scores: ArrayLike, groups: ArrayLike, discount: ArrayLike) -> FloatArray:
    """Return the discount of the place that each row takes in its request; 0 beyond the last.

    Tied candidates share their places.

    >>> place_gains([3, 1, 2, 2], ["a", "a", "a", "a"], [1.0, 0.6, 0.4])
    array([1. , 0. , 0.5, 0.5])
    """
    values = check_scores(scores)
    return _gains(values, *request_layout(values, groups), np.asarray(discount, np.float64))


def value_at_k(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    k: int,
    *,
    value: ArrayLike,
    event_weight: ArrayLike | None = None,
) -> float:
    """Return the mean over requests of Σ_{j ≤ k} Σ_m v_m y_(j)m.

    Tied candidates share their places, as for all figures at k. True probabilities in place of
    labels give the expected value. It is nan if there is no request.

    Args:
        scores: (n,), finite.
        labels: (n, M) in [0, 1].
        groups: (n,) the request of each row.
        k: How many places of a request count.
        value: v, (M,).
        event_weight: (n,) weights of the events of each row. With inverse propensities the result
            estimates the value if every row had been looked at. None counts each once.

    >>> labels = [[1, 0], [0, 1], [0, 0], [1, 0]]  # click, follow
    >>> value_at_k([3, 2, 1, 9], labels, ["a", "a", "a", "b"], k=1, value=[1, 10])
    1.0
    >>> value_at_k([2, 3, 1, 9], labels, ["a", "a", "a", "b"], k=1, value=[1, 10])
    5.5
    """
    each = _request_values(scores, labels, groups, k, value, event_weight)
    return float(each.mean()) if each.size else float("nan")


def events_at_k(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    k: int,
    *,
    event_weight: ArrayLike | None = None,
) -> FloatArray:
    """Return, per objective, the mean over requests of Σ_{j ≤ k} y_(j)m.

    `value_at_k` is this times the values of events; `event_weight` is as there. Ties share their
    places, so equal scores give the mean of a random order. It is nan if there is no request.

    >>> labels = [[1, 0], [0, 1], [0, 0], [1, 0]]  # click, follow
    >>> events_at_k([3, 2, 1, 9], labels, ["a", "a", "a", "b"], k=1)
    array([1., 0.])
    """
    shown, _, starts = _shown(scores, groups, k, event_weight)
    total: FloatArray = shown @ _events(labels, len(shown))
    requests = len(starts) - 1
    return total / requests if requests else np.full(len(total), np.nan)


def bootstrap_values(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    k: int,
    *,
    value: ArrayLike,
    event_weight: ArrayLike | None = None,
    units: ArrayLike | None = None,
    replicates: int = 200,
    seed: int = 0,
) -> FloatArray:
    """Return `value_at_k` on each of many resampled logs.

    A seed stands for the same requests whatever the scores, so the difference of two results is a
    paired bootstrap. With `units`, such as the user of each row, these are drawn with all their
    requests. Of a value (M, K), K prices of every event, it is (replicates, K): those of
    the identity are the events of each objective.

    >>> bootstrap_values([2, 1] * 50, [1, 0] * 50, np.arange(100) // 2, 1, value=[3], replicates=2)
    array([3., 3.])
    """
    each = _request_values(scores, labels, groups, k, value, event_weight)
    values = unit_sums(each, groups, units)
    requests = unit_sums(np.ones(len(each)), groups, units)
    means = np.full((replicates, *values.shape[1:]), np.nan)
    for i, drawn in enumerate(poisson_weights(len(values), replicates, seed)):
        if total := drawn @ requests:
            means[i] = drawn @ values / total
    return means


def _request_values(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    k: int,
    value: ArrayLike,
    event_weight: ArrayLike | None,
) -> FloatArray:
    """Return the value at k of every request, in the order of their ids."""
    values = check_scores(scores)
    table, worth = _events(labels, len(values)), np.asarray(value, dtype=np.float64)
    if worth.shape[:1] != (table.shape[1],) or not np.isfinite(worth).all():
        raise DataError(
            f"`value` must have one finite number for each of {table.shape[1]} objectives. "
            f"Got {np.array2string(worth, threshold=5)}."
        )
    shown, order, starts = _shown(values, groups, k, event_weight)
    if not order.size:
        return np.empty(0)
    earned = (shown * (table @ worth).T).T  # (rows,) or (rows, K)
    each: FloatArray = np.add.reduceat(earned[order], starts[:-1], axis=0)
    return each


def _events(labels: ArrayLike | Outcomes, rows: int) -> LabelArray:
    return labels.events() if isinstance(labels, Outcomes) else check_labels(labels, rows)


def _shown(
    scores: ArrayLike, groups: ArrayLike, k: int, event_weight: ArrayLike | None
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return what the events of each row count if k of a request are shown, and the requests."""
    k = checked_whole("k", k, least=1)
    values = check_scores(scores)
    order, starts = request_layout(values, groups)
    places = np.ones(min(k, np.diff(starts).max(initial=0)))
    shown: FloatArray = _gains(values, order, starts, places)
    counts = check_weights(event_weight, len(values), "event_weight")
    return shown * counts if counts.size else shown, order, starts


@kernel
def _gains(
    scores: NDArray[Any], order: IntArray, starts: IntArray, discount: FloatArray
) -> FloatArray:
    gains = np.zeros(order.size)
    for g in range(starts.size - 1):
        stop, place = starts[g + 1], 0
        while stop > starts[g] and place < discount.size:
            first = stop - 1
            while first > starts[g] and scores[order[first - 1]] == scores[order[stop - 1]]:
                first -= 1
            tied = stop - first
            share = discount[place : place + tied].sum() / tied
            for i in range(first, stop):
                gains[order[i]] = share
            place += tied
            stop = first
    return gains
