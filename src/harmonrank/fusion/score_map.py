"""ScoreMap: a rising curve that gives one model's fused scores the distribution of another's.

A new model may rank better and still upset whatever reads its scores: thresholds, blends with
other scores, dashboards. Matching quantiles repairs that without touching the ranking:

    g(s) = F_running⁻¹(F_new(s)),

both distribution functions on the same rows. It is kept as knots at even steps of the logit of the
level, so that both ends are as well known as the middle, with straight lines between and beyond
them. Where the other model gave many rows one score, g still rises by a little: no two rows that
the model tells apart become equal.
"""

__all__ = ["AlignedMap", "ScoreMap"]

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from harmonrank.support.errors import DataError
from harmonrank.support.storage.arrays import LARGEST, Array

FEWEST = 1000
"""Rows that a distribution is measured on at least."""

_KNOTS = 257
_FARTHEST = 8.0  # logits: the outermost levels are 3 rows in 10,000
_LEAST_SLOPE = 1e-6  # of the mean one


_Knots = Annotated[np.ndarray, Array(("knots",), strictly=True, least=2)]


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """A strictly rising, piecewise linear function.

    Attributes:
        x: (knots,) fused scores of the model, strictly rising.
        y: (knots,) what they become, strictly rising.
    """

    x: _Knots
    y: _Knots

    @classmethod
    def between(cls, new: np.ndarray, running: np.ndarray) -> Self:
        """Return the map after which `new` is distributed like `running`.

        Raises:
            DataError: There are too few rows, or one of them has a single score.
        """
        for scores, whose in ((new, "the new"), (running, "the running")):
            if len(scores) < FEWEST:
                raise DataError(
                    f"Scores are aligned on at least {FEWEST:,} rows that count. Got "
                    f"{len(scores):,}; add rows."
                )
            if not np.isfinite(scores).all() or np.abs(scores).max() > LARGEST / 2:
                raise DataError(f"The scores of {whose} model must be finite and below 1e29.")
            if scores.min() == scores.max():
                raise DataError(
                    f"All rows have one score of {whose} model, so there is nothing to align; use "
                    "other rows."
                )
        levels = 1 / (1 + np.exp(-np.linspace(-_FARTHEST, _FARTHEST, _KNOTS)))
        x, y = np.quantile(new, levels), np.quantile(running, levels)
        # Of a score that many rows share, the middle of what they become.
        knots = np.unique(x)
        y = np.array([y[x == knot].mean() for knot in knots])
        if len(knots) < 2:
            knots = np.array([new.min(), new.max()])
            y = np.array([running.min(), running.max()])
        return cls(knots, _rising(knots, y))

    def __call__(self, fused: np.ndarray) -> np.ndarray:
        """Return what scores become; each depends on itself alone."""
        first, last = self.slopes
        inside = np.interp(fused, self.x, self.y)
        below, above = fused - self.x[0], fused - self.x[-1]
        found: np.ndarray = inside + np.where(below < 0, first * below, 0.0)
        return found + np.where(above > 0, last * above, 0.0)

    @property
    def slopes(self) -> tuple[float, float]:
        """How the map goes on below its first knot and above its last."""
        steep = np.diff(self.y) / np.diff(self.x)
        return float(steep[0]), float(steep[-1])


def _rising(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return y with at least a little slope everywhere."""
    least = _LEAST_SLOPE * (y[-1] - y[0]) / (x[-1] - x[0])
    # Above the line of the least slope it may only rise.
    found: np.ndarray = np.maximum.accumulate(y - least * x) + least * x
    return found


@dataclass(frozen=True, eq=False)
class AlignedMap:
    """A map, and the objective weights that it was made with: with others it does not count."""

    weights: Annotated[np.ndarray, Array(("M",), low=-1e100, high=1e100)]
    curve: ScoreMap
