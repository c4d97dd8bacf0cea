"""Scales: what the numbers of an upstream model mean, and the probabilities they become."""

__all__ = ["SCALES", "bounds_of", "guess_scale", "raw_scores", "to_probabilities"]

from collections.abc import Sequence

import numpy as np

from harmonrank.support.logistic import logit, sigmoid

SCALES = ("probability", "percent", "logit", "any")
"""What scores may be: in [0, 1], in [0, 100], log-odds, or any numbers that rise with the odds."""

_STRAYS = 0.01
_LARGEST_LOGIT = 50.0


def bounds_of(scale: str) -> tuple[float, float]:
    """Return the smallest and the largest score of a scale."""
    return {"probability": (0.0, 1.0), "percent": (0.0, 100.0)}.get(scale, (-np.inf, np.inf))


def to_probabilities(scores: np.ndarray, scales: Sequence[str]) -> np.ndarray:
    """Return (rows, objectives) scores as numbers in [0, 1]; NaN stays NaN.

    A percentage x becomes x/100, a logit 1/(1 + e⁻ˣ), and a score of scale `any` the same of
    asinh(x), which is near x for small scores and grows like log(2x) for large ones. Each is a
    function of the number alone, and rises with it, so no order is lost. Where all are
    probabilities they stay as they are; otherwise they become float64.

    >>> to_probabilities(np.array([[25.0, 0.0]]), ["percent", "logit"])
    array([[0.25, 0.5 ]])
    """
    if all(scale == "probability" for scale in scales):
        return scores
    p = scores.astype(np.float64)
    for m, scale in enumerate(scales):
        # A copy side by side in memory: what is computed may differ in its last bit otherwise.
        column = np.ascontiguousarray(p[:, m])
        if scale == "percent":
            p[:, m] = column / 100
        elif scale == "logit":
            p[:, m] = sigmoid(column)
        elif scale == "any":
            p[:, m] = _squashed(column)
    return p


def _squashed(x: np.ndarray) -> np.ndarray:
    """Return 1/(1 + exp(−asinh(x))), by its closed form √(1 + x²) − x of the power."""
    far = np.hypot(1.0, x) + np.abs(x)
    squashed: np.ndarray = 1 / (1 + np.where(x < 0, far, 1 / far))
    return squashed


def raw_scores(p: np.ndarray, scales: Sequence[str]) -> np.ndarray:
    """Return numbers that `to_probabilities` turns into these, but for the edges of [0, 1]."""
    raw = p.copy()
    for m, scale in enumerate(scales):
        if scale == "percent":
            raw[:, m] = 100 * p[:, m]
        elif scale in ("logit", "any"):
            raw[:, m] = logit(p[:, m]) if scale == "logit" else np.sinh(logit(p[:, m]))
    return raw


def guess_scale(values: np.ndarray) -> str:
    """Return the scale that scores look like; a few that are out of range tell nothing.

    >>> guess_scale(np.array([0.2, 97.0])), guess_scale(np.array([-3.1, 0.4]))
    ('percent', 'logit')
    """
    values = values[np.isfinite(values)]
    if np.count_nonzero((values < 0) | (values > 1)) <= _STRAYS * len(values):
        return "probability"
    low, high = values.min(), values.max()
    if low >= 0:
        return "percent" if high <= 100 else "any"
    return "logit" if max(-low, high) <= _LARGEST_LOGIT else "any"
