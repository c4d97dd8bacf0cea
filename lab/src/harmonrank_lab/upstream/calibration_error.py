"""Calibration error: how far predictions are from what happens."""

__all__ = ["calibration_error"]

import numpy as np
from numpy.typing import ArrayLike


def calibration_error(probabilities: ArrayLike, labels: ArrayLike, *, bins: int = 20) -> float:
    """Return the expected calibration error, ECE = Σ_b (n_b/n) |mean p − mean y| over bins b.

    Bins hold equally many rows, so that no bin is empty however skewed the scores are. Chance
    alone gives about 0.8·√(ȳ(1−ȳ)·bins/n), so the error of few rows is never 0.

    Args:
        probabilities: (n,).
        labels: (n,) of 0 and 1.
        bins: At most this many; never more than rows.

    >>> round(calibration_error([0.2, 0.3, 0.5], [0, 1, 0], bins=1), 3)
    0.0
    >>> round(calibration_error([0.1, 0.9], [1, 0], bins=2), 3)
    0.9
    """
    p, y = np.asarray(probabilities, np.float64), np.asarray(labels, np.float64)
    order = np.argsort(p, kind="stable")
    gaps = np.concatenate([[0.0], np.cumsum(p[order] - y[order])])
    edges = np.linspace(0, len(p), min(bins, len(p)) + 1).round().astype(int)
    return float(np.abs(np.diff(gaps[edges])).sum() / len(p))
