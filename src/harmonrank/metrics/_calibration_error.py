"""How far predicted probabilities are from what comes true."""

__all__ = ["calibration_error"]

import numpy as np
from numpy.typing import ArrayLike

from harmonrank.metrics._inputs import check_labels, check_scores
from harmonrank.ranking import argsort


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
    p = check_scores(probabilities).astype(np.float64)
    y = check_labels(labels, len(p))[:, 0]
    order = argsort(p)
    gaps = np.concatenate([[0.0], np.cumsum(p[order] - y[order])])
    edges = np.linspace(0, len(p), min(bins, len(p)) + 1).round().astype(int)
    return float(np.abs(np.diff(gaps[edges])).sum() / len(p))
