"""The candidates of one request, as a service has them."""

__all__ = ["checked_candidates"]

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from harmonrank.errors import DataError


def checked_candidates(scores: ArrayLike, names: Sequence[str]) -> np.ndarray:
    """Return (candidates, objectives) scores as float32 or float64, all in [0, 1].

    >>> checked_candidates([[0.1, 0.2]], ["buy", "like"])
    array([[0.1, 0.2]])
    """
    p = np.asarray(scores)
    if p.ndim != 2 or p.shape[1] != len(names):
        raise DataError(
            f"`scores` must be (candidates, {len(names)}), one column for each of "
            f"{', '.join(names)}. Got {p.shape}."
        )
    p = p if p.dtype == np.float32 else p.astype(np.float64)
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise DataError(
            f"`scores` must lie in [0, 1]. Got {p.min()} to {p.max()}; drop or repair them."
        )
    return p
