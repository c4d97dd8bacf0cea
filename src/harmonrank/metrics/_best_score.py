"""The best score that true probabilities imply."""

__all__ = ["best_score"]

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.support.errors import UsageError


def best_score(truth: ArrayLike, weights: Sequence[float] | None = None) -> NDArray[np.float64]:
    """Return the score that no other beats in Σ_m w_m AUC_m on these rows.

    s*(x) = Σ_m w_m p_m(x) / (π_m (1 − π_m)), π_m the mean of p_m over the rows. A pair (i, j) of
    objective m gains p_i (1 − p_j) if i is put above j and p_j (1 − p_i) if below; the
    difference is p_i − p_j, so the pair's total is the difference of one function, s*.
    A weight may be below 0, as of an unwanted objective (eq. 1 of docs/objectives.md).
    An objective that is certain on all rows (π of 0 or 1) has no AUC and is left out.

    >>> best_score([[0.1, 0.5], [0.3, 0.5]])
    array([2.625, 3.875])

    Args:
        truth: (rows, objectives), p_m given all that a fusion sees.
        weights: one per objective; all 1 if left out.
    """
    p = np.asarray(truth, dtype=np.float64)
    if p.ndim != 2 or not len(p):
        raise UsageError(f"`truth` must have the shape (rows, objectives). Got {p.shape}.")
    w = np.ones(p.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != p.shape[1:]:
        raise UsageError(f"`weights` must have one number per objective, {p.shape[1]}. Got {w!r}.")
    variance = p.mean(0) * (1 - p.mean(0))
    effective = np.divide(w, variance, out=np.zeros_like(w), where=variance > 0)
    score: NDArray[np.float64] = p @ effective
    return score
