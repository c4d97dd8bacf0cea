"""How scores become z, the point that a soft rank projects."""

__all__ = ["scale_rows"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import kernel

Array = NDArray[Any]


@kernel
def scale_rows(
    scores: Array,
    weights: Array | None,
    strength: float,
    kl: bool,
    standardise: bool,
    centre: Array,
    factor: Array,
    spread: Array,
) -> int:
    """Fill z = (score − centre)·factor for every row; return how many scores are not finite.

    Standardised, factor = c/std with c = W/strength for l2, whose target ranks run to W (the number
    of items or the sum of weights), and c = 1/strength for kl, whose log target ranks have a spread
    that does not grow with W. `spread` is W c², what the gradient through std divides by. With all
    scores equal the factor is zero: every item is tied.
    """
    rows, n = scores.shape
    bad = 0
    for row in range(rows):
        low, high, total = np.inf, -np.inf, 0.0
        for i in range(n):
            value = np.float64(scores[row, i])
            bad += value - value != 0.0
            if weights is None or weights[row, i] > 0:
                low, high = min(low, value), max(high, value)
        if not standardise:
            centre[row], factor[row], spread[row] = 0.0, 1.0 / strength, np.inf
            continue
        centre[row], factor[row], spread[row] = 0.0, 0.0, np.inf
        if bad or not low < high:
            continue
        # A power of two near the largest score keeps squares in range and rounds nothing.
        unit = 2.0 ** min(-np.floor(np.log2(max(-low, high))), 1022.0)
        mean = 0.0
        for i in range(n):
            w = 1.0 if weights is None else weights[row, i]
            mean += w * (scores[row, i] * unit)
            total += w
        mean /= total
        variance = 0.0
        for i in range(n):
            w = 1.0 if weights is None else weights[row, i]
            variance += w * (scores[row, i] * unit - mean) ** 2
        c = (1.0 if kl else total) / strength
        slope = c / np.sqrt(variance / total) * unit
        # Scores that differ by less than float64 can divide by count as equal.
        if np.isfinite(slope):
            centre[row], factor[row], spread[row] = mean / unit, slope, total * c * c
    return bad
