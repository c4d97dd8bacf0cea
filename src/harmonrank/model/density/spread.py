"""Spread: where columns lie and how widely, whatever a few broken values say."""

__all__ = ["Spread"]

from dataclasses import dataclass
from typing import Self

import numpy as np

_TENTHS = (0.1, 0.5, 0.9)
_NORMAL_WIDTH = 2.5631  # from the 10th to the 90th percentile, in standard deviations
_REACH = 6.0  # in standard deviations from the median; values further away are broken


@dataclass(frozen=True)
class Spread:
    """Median and width of some columns; a few broken values change neither.

    Attributes:
        middle: (M,) medians.
        width: (M,) from the 10th to the 90th percentile, in standard deviations of a normal.
    """

    middle: np.ndarray
    width: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray, weight: np.ndarray | None = None) -> Self:
        """Measure (rows, M) columns by weighted quantiles; NaN does not count.

        A column without a value has the median and the width NaN.

        >>> Spread.of(np.array([[1.0], [2.0], [3.0], [99.0]]), np.array([1.0, 1.0, 1.0, 0.0]))
        Spread(middle=array([2.]), width=array([0.62424408]))
        """
        if weight is None and not np.isnan(columns).any():
            low, middle, high = np.quantile(columns, _TENTHS, axis=0)
        else:
            w = np.ones(len(columns)) if weight is None else weight
            low, middle, high = np.stack([_quantiles(x, w) for x in columns.T], axis=1)
        return cls(middle, (high - low) / _NORMAL_WIDTH)

    def clipped(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns with broken values moved to the edge of what is plausible."""
        reach = _REACH * self.width
        kept: np.ndarray = np.clip(columns, self.middle - reach, self.middle + reach)
        return kept


def _quantiles(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return weighted quantiles by interpolation; with equal weights, those of NumPy."""
    order = np.argsort(x, kind="stable")
    order = order[(weight[order] > 0) & ~np.isnan(x[order])]
    if not len(order):
        return np.full(len(_TENTHS), np.nan)
    w = weight[order]
    # The mass between two neighbours is half of each; the first is at 0, the last at 1.
    place = np.concatenate([[0.0], np.cumsum((w[1:] + w[:-1]) / 2)])
    quantiles: np.ndarray = np.interp(np.array(_TENTHS) * place[-1], place, x[order])
    return quantiles
