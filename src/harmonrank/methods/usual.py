"""Usual: where the scores were at the fit, as far as a later table has to know."""

__all__ = ["Usual", "alike"]

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

# A replaced model moves its score everywhere; anywhere, by at least this part of the whole move.
_LEAST_PART = 1 / 3
_TINY_SCALE = 1e-3  # of one value, whose logarithm would be infinite
_NORMAL_WIDTH = 2.5631  # from the 10th to the 90th percentile, in standard deviations


@dataclass(frozen=True)
class Usual:
    """Where the deviations of each score from its law were at the fit.

    Attributes:
        middle: (M,) medians.
        width: (M,) 10th to 90th percentile, in standard deviations; 0 of a constant score.
    """

    middle: np.ndarray
    width: np.ndarray

    @classmethod
    def of(cls, away: np.ndarray) -> Self:
        """Measure (rows, M) deviations."""
        low, middle, high = np.quantile(away, [0.1, 0.5, 0.9], axis=0)
        return cls(middle, (high - low) / _NORMAL_WIDTH)

    def moves(self, away: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return offset and scale of each score now; a score that was constant has not moved."""
        now, known = Usual.of(away), self.width > 0
        width = np.where(known, self.width, 1.0)
        offset = np.where(known, (now.middle - self.middle) / width, 0.0)
        return offset, np.where(known, now.width / width, 1.0)


def alike(
    usual: Usual, away: np.ndarray, columns: Sequence[int], parts: Iterable[np.ndarray]
) -> bool:
    """Return whether some scores moved in every part of the rows, and in the same direction.

    A replaced model does that. A campaign moves one context, a change in the middle of a table
    some of its rows.

    Args:
        usual: The deviations at the fit.
        away: (rows, M) deviations now.
        columns: Of the scores in question.
        parts: Rows of each part.
    """

    def steps(rows: np.ndarray) -> np.ndarray:
        offset, scale = usual.moves(rows)
        return np.stack([offset, np.log(np.maximum(scale, _TINY_SCALE))])[:, columns]

    whole = steps(away)
    least = _LEAST_PART * (whole**2).sum(axis=0)
    return all(((steps(away[part]) * whole).sum(axis=0) >= least).all() for part in parts)
