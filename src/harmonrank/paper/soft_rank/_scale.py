"""How scores become z, the point that a soft rank projects."""

__all__ = ["scale"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.kernel import kernel

Array = NDArray[Any]


@kernel
def _moment(scores: Array, weights: Array | None, unit: float, mean: float, square: bool) -> float:
    """Return Σ w (s·unit − mean), or its square's sum."""
    # Four sums side by side, so that one addition need not wait for the last.
    sums = np.zeros(4)
    a = b = c = d = 0.0
    n = scores.size
    for i in range(0, n - n % 4, 4):
        p, q = scores[i] * unit - mean, scores[i + 1] * unit - mean
        r, s = scores[i + 2] * unit - mean, scores[i + 3] * unit - mean
        if square:
            p, q, r, s = p * p, q * q, r * r, s * s
        if weights is not None:
            p, q, r, s = p * weights[i], q * weights[i + 1], r * weights[i + 2], s * weights[i + 3]
        a, b, c, d = a + p, b + q, c + r, d + s
    for i in range(n - n % 4, n):
        p = scores[i] * unit - mean
        sums[i % 4] = (p * p if square else p) * (1.0 if weights is None else weights[i])
    return float((a + sums[0]) + (b + sums[1]) + ((c + sums[2]) + (d + sums[3])))


@kernel
def _extremes(scores: Array) -> tuple[float, float, bool]:
    """Return the lowest and the highest score, and whether all are finite."""
    n, bad = scores.size, 0
    for i in range(n):
        bad += scores[i] - scores[i] != 0
    # Two of each side by side, for the same reason as above.
    a = c = np.inf
    b = d = -np.inf
    for i in range(0, n - n % 2, 2):
        p, q = float(scores[i]), float(scores[i + 1])
        a, b = p if p < a else a, p if p > b else b
        c, d = q if q < c else c, q if q > d else d
    if n % 2:
        a, b = min(a, float(scores[n - 1])), max(b, float(scores[n - 1]))
    return min(a, c), max(b, d), bad == 0


@kernel
def _weighted_extremes(scores: Array, weights: Array) -> tuple[float, float]:
    """Return the lowest and the highest score that has weight."""
    low, high = np.inf, -np.inf
    for i in range(scores.size):
        if weights[i] > 0:
            low, high = min(low, float(scores[i])), max(high, float(scores[i]))
    return low, high


@kernel
def scale(
    scores: Array, weights: Array | None, strength: float, kl: bool, standardise: bool
) -> tuple[bool, float, float, float, float, float]:
    """Return how scores become z = (score − centre)·factor.

    Standardised, factor = c/std with c = W/strength for l2, whose target ranks run to W (the number
    of items or the sum of weights), and c = 1/strength for kl, whose log target ranks have a spread
    that does not grow with W. With all scores equal the factor is zero: every item is tied.

    Returns:
        Whether all scores are finite, the lowest and the highest, centre, factor, and the spread
        W c², which the gradient through std divides by.
    """
    low, high, finite = _extremes(scores)
    bottom, top = (low, high) if weights is None else _weighted_extremes(scores, weights)
    if not finite or not standardise or not bottom < top:
        return finite, low, high, 0.0, 0.0 if standardise else 1 / strength, np.inf
    total = float(scores.size) if weights is None else weights.sum()
    # A power of two near the largest score keeps squares in range and rounds nothing.
    unit = 2.0 ** min(-np.floor(np.log2(max(-bottom, top))), 1022.0)
    mean = _moment(scores, weights, unit, 0.0, False) / total
    variance = _moment(scores, weights, unit, mean, True) / total
    c = (1.0 if kl else total) / strength
    slope = c / np.sqrt(variance) * unit if variance > 0 else np.inf
    # Scores that differ by less than float64 can divide by count as equal.
    if not np.isfinite(slope):
        return True, low, high, 0.0, 0.0, np.inf
    return True, low, high, mean / unit, slope, total * c * c
