"""Value at k: what the events among the first k of a request are worth."""

__all__ = ["bootstrap_values", "events_at_k", "request_values", "value_at_k", "value_interval"]

import numpy as np
from numpy.typing import ArrayLike

from harmonrank.metrics._bootstrap import percentiles, poisson_weights
from harmonrank.metrics._inputs import FloatArray, check_labels, check_scores, check_weights
from harmonrank.metrics._intervals import Interval
from harmonrank.metrics._outcomes import Outcomes
from harmonrank.metrics._requests import request_layout
from harmonrank.metrics._topk import expected_gains
from harmonrank.support.errors import DataError
from harmonrank.support.options import checked_whole


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
        k: So many of a request count.
        value: v, (M,).
        event_weight: (n,) how much the events of a row count; by inverse propensities it is the
            value as if every row had been looked at. None counts each once.

    >>> labels = [[1, 0], [0, 1], [0, 0], [1, 0]]  # click, follow
    >>> value_at_k([3, 2, 1, 9], labels, ["a", "a", "a", "b"], k=1, value=[1, 10])
    1.0
    >>> value_at_k([2, 3, 1, 9], labels, ["a", "a", "a", "b"], k=1, value=[1, 10])
    5.5
    """
    found = request_values(scores, labels, groups, k, value=value, event_weight=event_weight)
    return float(found.mean()) if found.size else float("nan")


def events_at_k(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    k: int,
    *,
    event_weight: ArrayLike | None = None,
) -> FloatArray:
    """Return, per objective, the mean over requests of Σ_{j ≤ k} y_(j)m.

    Whatever events are worth, `value_at_k` is their worth times this; `event_weight` is as there.
    Ties share their places, so equal scores give what a random order shows. It is nan if there is
    no request.

    >>> labels = [[1, 0], [0, 1], [0, 0], [1, 0]]  # click, follow
    >>> events_at_k([3, 2, 1, 9], labels, ["a", "a", "a", "b"], k=1)
    array([1., 0.])
    """
    k = checked_whole("k", k, least=1)
    values = check_scores(scores)
    table = labels.events() if isinstance(labels, Outcomes) else check_labels(labels, len(values))
    order, starts = request_layout(values, groups)
    shown = np.ones(min(k, np.diff(starts).max(initial=0)))
    counts = check_weights(event_weight, len(values), "event_weight")
    gains = table if counts.size == 0 else table * counts[:, None]
    found = expected_gains(values, order, starts, gains, shown)
    empty = np.full(table.shape[1], np.nan)
    return found.mean(axis=0) if len(found) else empty


def value_interval(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    k: int,
    *,
    value: ArrayLike,
    event_weight: ArrayLike | None = None,
    level: float = 0.95,
    replicates: int = 200,
    seed: int = 0,
) -> Interval:
    """Return `value_at_k` with its bootstrap interval; whole requests are drawn again.

    >>> value_interval([2, 1] * 50, [1, 0] * 50, np.arange(100) // 2, 1, value=[3.0])
    Interval(estimate=3.0, low=3.0, high=3.0, level=0.95)
    """
    found = request_values(scores, labels, groups, k, value=value, event_weight=event_weight)
    if not found.size:
        return Interval(float("nan"), float("nan"), float("nan"), level)
    return percentiles(float(found.mean()), _resampled(found, replicates, seed), level)


def bootstrap_values(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    k: int,
    *,
    value: ArrayLike,
    event_weight: ArrayLike | None = None,
    replicates: int = 200,
    seed: int = 0,
) -> FloatArray:
    """Return `value_at_k` on each of many resampled logs.

    A seed stands for the same requests whatever the scores, so the difference of two results is a
    paired bootstrap.

    >>> bootstrap_values([2, 1] * 50, [1, 0] * 50, np.arange(100) // 2, 1, value=[3], replicates=2)
    array([3., 3.])
    """
    found = request_values(scores, labels, groups, k, value=value, event_weight=event_weight)
    return _resampled(found, replicates, seed)


def _resampled(values: FloatArray, replicates: int, seed: int) -> FloatArray:
    means = np.full(replicates, np.nan)
    for i, drawn in enumerate(poisson_weights(len(values), replicates, seed)):
        if total := int(drawn.sum(dtype=np.int64)):
            means[i] = drawn @ values / total
    return means


def request_values(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    k: int,
    *,
    value: ArrayLike,
    event_weight: ArrayLike | None = None,
) -> FloatArray:
    """Return the value at k of every request, in the order of their ids."""
    k = checked_whole("k", k, least=1)
    values = check_scores(scores)
    table = labels.events() if isinstance(labels, Outcomes) else check_labels(labels, len(values))
    worth = np.asarray(value, dtype=np.float64)
    if worth.shape != (table.shape[1],) or not np.isfinite(worth).all():
        raise DataError(
            f"`value` must have one finite number for each of {table.shape[1]} objectives. "
            f"Got {np.array2string(worth, threshold=5)}."
        )
    order, starts = request_layout(values, groups)
    shown = np.ones(min(k, np.diff(starts).max(initial=0)))
    counts = check_weights(event_weight, len(values), "event_weight")
    gains = table @ worth if counts.size == 0 else (table @ worth) * counts
    return expected_gains(values, order, starts, gains[:, None], shown)[:, 0]
