"""Calibrator: scores to probabilities by one map per objective, and the error of both."""

__all__ = [
    "CalibrationFacts", "Calibrator", "Whole", "calibration_error", "calibration_facts",
    "shift_to_mean",
]  # fmt: skip

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from harmonrank.metrics import fit_logistic, logit, sigmoid
from harmonrank.support import DataError

_FEWEST = 20

Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Map = tuple[float, float]
"""Slope and intercept."""


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


@dataclass(frozen=True)
class CalibrationFacts:
    """Expected calibration error of an objective, and its positives among the rows measured on.

    Attributes:
        before: None, or nan, where there was nothing to measure.
        after: Of rows that the map was not fitted on: each half is mapped by the other's fit.
    """

    before: float | None
    after: float | None
    positives: Whole


@dataclass(frozen=True)
class Calibrator:
    """P(y = 1 | s) per objective: σ(slope·logit(s) + intercept).

    An objective with fewer than 20 positives or negatives keeps its scores as they are: a map
    fitted on so few would be noise.

    Attributes:
        maps: Per objective, or None where scores are kept.
    """

    maps: tuple[Map | None, ...]

    @classmethod
    def fit(cls, scores: np.ndarray, labels: np.ndarray) -> Self:
        """Learn the maps, scores and labels being (rows, objectives)."""
        return cls(tuple(_fit(s, y) for s, y in zip(scores.T, labels.T, strict=True)))

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return calibrated probabilities, (rows, objectives) float32."""
        result = np.array(scores, np.float32)
        for m, (s, known) in enumerate(zip(scores.T, self.maps, strict=True)):
            if known is not None:
                result[:, m] = sigmoid(known[0] * logit(s) + known[1])
        # A probability of exactly 0 or 1 claims more than any data can tell.
        return np.clip(result, 1e-7, 1 - 1e-7)

    def centred(self, scores: np.ndarray, labels: np.ndarray) -> Self:
        """Return the same maps with intercepts that make the mean on some rows right.

        σ(slope·logit(s) + b) with b such that its mean is that of the labels. How sure a network
        may be cannot be told from rows it has learned, since it has learned each of them; what
        share of them is positive can.
        """
        each = zip(self.maps, scores.T, labels.T, strict=True)
        maps = (k and (k[0], shift_to_mean(k[0] * logit(s), y.mean())) for k, s, y in each)
        return type(self)(tuple(maps))

    def check(self, objectives: int) -> None:
        """Refuse stored maps of other objectives."""
        if len(self.maps) != objectives:
            raise DataError(f"the calibrator must have {objectives} maps, got {len(self.maps)}")


def calibration_facts(scores: np.ndarray, labels: np.ndarray) -> tuple[CalibrationFacts, ...]:
    """Measure the calibration error before and after, without letting a row grade itself."""
    half = np.arange(len(scores)) % 2 == 0
    after = np.empty(scores.shape, np.float32)
    for mine in (half, ~half):
        after[mine] = Calibrator.fit(scores[~mine], labels[~mine])(scores[mine])
    columns = zip(scores.T, after.T, labels.T, strict=True)
    return tuple(
        CalibrationFacts(calibration_error(s, y), calibration_error(p, y), int(y.sum()))
        for s, p, y in columns
    )


def _fit(scores: np.ndarray, labels: np.ndarray) -> Map | None:
    positives = int(labels.sum())
    if min(positives, len(labels) - positives) < _FEWEST:
        return None
    slope, intercept = fit_logistic(scores, labels)
    # A score that speaks against its label on few rows is noise, not a reason to turn it round.
    return (float(slope), float(intercept)) if slope > 0 else None


def shift_to_mean(z: np.ndarray, wanted: float) -> float:
    """Return b with mean σ(z + b) = wanted, a share inside (0, 1)."""
    reach = 1 + np.abs(z).max() + abs(logit(wanted))
    return float(brentq(lambda b: sigmoid(z + b).mean() - wanted, -reach, reach, xtol=1e-12))
