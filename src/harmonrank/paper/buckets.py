"""Knots: where the buckets of each score lie, fitted on training scores."""

__all__ = ["Scale", "fit_knots", "knot_count", "table_rows"]

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.logistic import SMALLEST_SINGLE, logit, sigmoid

Scale = Literal["raw", "range", "logit", "quantile"]

_TAIL = 1e-4  # The range leaves out one row in ten thousand at each end, where outliers are.


def knot_count(buckets: int, *, interpolate: bool) -> int:
    """Return how many knots a score has: the inner edges of its buckets, or one per table row."""
    return buckets if interpolate else buckets - 1


def fit_knots(
    scores: NDArray[Any] | None, objectives: int, buckets: int, scale: Scale, *, interpolate: bool
) -> NDArray[np.float32]:
    """Return the knots of every score, (objectives, knots), in the score's own units, ascending.

    Equal steps on the raw score from 0 to 1, on its range, on the range of its logit, or equal
    shares of the rows. Without interpolation the knots are the inner edges of the buckets, so that
    a score falls into bucket #{knots ≤ s}; with it, each is the place of a table row.

    Args:
        scores: Training scores, (rows, objectives); not used for the raw scale.
        objectives: How many scores there are.
        buckets: Rows of each score's table.
        scale: The scale on which the steps are equal.
        interpolate: Whether embeddings are interpolated between rows.

    >>> fit_knots(None, 1, 4, "raw", interpolate=False)
    array([[0.25, 0.5 , 0.75]], dtype=float32)
    >>> fit_knots(np.array([[0.1], [0.2], [0.9]]), 1, 3, "quantile", interpolate=True).round(3)
    array([[0.1, 0.2, 0.9]], dtype=float32)
    """
    steps = np.linspace(0, 1, buckets) if interpolate else np.arange(1, buckets) / buckets
    if scale == "raw" or scores is None or not len(scores):
        return np.tile(steps, (objectives, 1)).astype(np.float32)
    knots = [_increasing(_fit_one(s.astype(np.float64), steps, scale)) for s in scores.T]
    return np.array(knots, np.float32).reshape(objectives, len(steps))


def _fit_one(s: NDArray[np.float64], steps: NDArray[np.float64], scale: Scale) -> Any:
    if scale == "quantile":
        return np.quantile(s, _TAIL + (1 - 2 * _TAIL) * steps)
    low, high = np.quantile(s, [_TAIL, 1 - _TAIL])
    if scale == "range":
        return low + (high - low) * steps
    low, high = logit([low, high], SMALLEST_SINGLE)
    return sigmoid(low + (high - low) * steps)


def _increasing(knots: NDArray[Any]) -> NDArray[np.float64]:
    """Separate knots that coincide, as where many scores are equal, by more than rounding."""
    apart = np.array(knots, np.float64)
    for i in range(1, len(apart)):
        apart[i] = max(apart[i], apart[i - 1] * (1 + 1e-6) + 1e-9)
    return apart


def table_rows(
    knots: NDArray[np.float32], scores: NDArray[np.float32], *, interpolate: bool
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the table row of each score, and the share of the next one, (rows, objectives) both.

    >>> knots = np.float32([[0.0, 0.5, 1.0]])
    >>> table_rows(knots, np.float32([[0.75]]), interpolate=True)
    (array([[1]]), array([[0.5]], dtype=float32))
    """
    row = np.empty(scores.shape, np.int64)
    share = np.zeros(scores.shape if interpolate else (0, scores.shape[1]), np.float32)
    for m, own in enumerate(knots):
        s = scores[:, m]
        row[:, m] = np.searchsorted(own[1:-1] if interpolate else own, s, side="right")
        if interpolate:
            low, high = own[row[:, m]], own[row[:, m] + 1]
            share[:, m] = np.clip((s - low) / (high - low), 0, 1)
    return row, share
