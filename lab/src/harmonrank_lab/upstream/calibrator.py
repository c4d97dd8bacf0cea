"""Calibrator: scores to probabilities, one map per objective."""

__all__ = ["CalibrationFacts", "Calibrator", "calibration_facts"]

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from harmonrank.metrics import fit_isotonic, fit_logistic, logit, sigmoid
from harmonrank.support.errors import DataError
from harmonrank_lab.upstream.calibration_error import calibration_error
from harmonrank_lab.upstream.stored import CalibratorForm, Whole

_FEWEST = 20
_STEPS, _PRECISION = 50, 1e-9


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
    """P(y = 1 | s) per objective: σ(slope·logit(s) + intercept), or an isotonic curve.

    An objective with fewer than 20 positives or negatives keeps its scores as they are: a map
    fitted on so few would be noise.

    Attributes:
        maps: Per objective x and y of the knots, or slope and intercept, or None for neither.
    """

    kind: str
    maps: tuple[tuple[np.ndarray, np.ndarray] | None, ...]

    @classmethod
    def fit(cls, scores: np.ndarray, labels: np.ndarray, kind: str) -> Self:
        """Learn the maps, scores and labels being (rows, objectives)."""
        return cls(
            kind,
            tuple(_fit(s, y, kind) for s, y in zip(scores.T, labels.T, strict=True)),
        )

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return calibrated probabilities, (rows, objectives) float32."""
        result = np.empty(scores.shape, np.float32)
        for m, found in enumerate(self.maps):
            result[:, m] = scores[:, m] if found is None else _apply(self.kind, found, scores[:, m])
        # A probability of exactly 0 or 1 claims more than any data can tell.
        return np.clip(result, 1e-7, 1 - 1e-7)

    def centred(self, scores: np.ndarray, labels: np.ndarray) -> Self:
        """Return the same maps with intercepts that make the mean on some rows right.

        σ(slope·logit(s) + b) with b such that its mean is that of the labels. How sure a network
        may be cannot be told from rows it has learned, since it has learned each of them; what
        share of them is positive can. Isotonic curves stay as they are.
        """
        if self.kind != "platt":
            return self
        maps = (
            None if found is None else (found[0], _intercept(found, s, y))
            for found, s, y in zip(self.maps, scores.T, labels.T, strict=True)
        )
        return type(self)(self.kind, tuple(maps))

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_form` reads, as plain values."""
        maps = [None if m is None else [m[0].tolist(), m[1].tolist()] for m in self.maps]
        return {"kind": self.kind, "maps": maps}

    @classmethod
    def from_form(cls, form: CalibratorForm, objectives: int) -> Self:
        """Build a calibrator from what `to_dict` returned, decoded.

        Raises:
            DataError: It is of other objectives, or a map is no rising curve of probabilities.
        """
        if len(form.maps) != objectives:
            raise DataError(f"the calibrator must have {objectives} maps, got {len(form.maps)}")
        maps = [
            None if m is None else (np.array(m[0], np.float64), np.array(m[1], np.float64))
            for m in form.maps
        ]
        if not all(found is None or _sound(form.kind, *found) for found in maps):
            raise DataError(f"the calibrator has a map that is not {form.kind}")
        return cls(form.kind, tuple(maps))


def _sound(kind: str, x: np.ndarray, y: np.ndarray) -> bool:
    """Tell whether stored numbers are slope and intercept, or knots of a rising curve."""
    finite = bool(np.isfinite(x).all() and np.isfinite(y).all())
    if kind == "platt":
        return finite and x.shape == y.shape == ()
    rising = kind == "isotonic" and x.ndim == 1 and x.shape == y.shape and len(x) > 0
    return finite and rising and bool((np.diff(x) >= 0).all() and (np.abs(y - 0.5) <= 0.5).all())


def calibration_facts(
    scores: np.ndarray, labels: np.ndarray, kind: str
) -> tuple[CalibrationFacts, ...]:
    """Measure the calibration error before and after, without letting a row grade itself."""
    half = np.arange(len(scores)) % 2 == 0
    after = np.empty(scores.shape, np.float32)
    for mine in (half, ~half):
        after[mine] = Calibrator.fit(scores[~mine], labels[~mine], kind)(scores[mine])
    return tuple(
        CalibrationFacts(
            calibration_error(scores[:, m], labels[:, m]),
            calibration_error(after[:, m], labels[:, m]),
            int(labels[:, m].sum()),
        )
        for m in range(scores.shape[1])
    )


def _fit(scores: np.ndarray, labels: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray] | None:
    positives = int(labels.sum())
    if kind == "none" or min(positives, len(labels) - positives) < _FEWEST:
        return None
    if kind == "isotonic":
        return fit_isotonic(scores, labels)
    slope, intercept = fit_logistic(scores, labels)
    # A score that speaks against its label on few rows is noise, not a reason to turn it round.
    return (np.array(slope), np.array(intercept)) if slope > 0 else None


def _intercept(found: tuple[np.ndarray, np.ndarray], s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return b with mean σ(slope·logit(s) + b) = mean y, by Newton's steps of bounded length."""
    slope, b = found
    z, wanted = slope * logit(s), y.mean()
    for _ in range(_STEPS):
        p = sigmoid(z + b)
        step = np.clip((wanted - p.mean()) / np.maximum((p * (1 - p)).mean(), 1e-12), -1, 1)
        b = b + step
        if abs(step) < _PRECISION:
            break
    return np.asarray(b)


def _apply(kind: str, found: tuple[np.ndarray, np.ndarray], scores: np.ndarray) -> np.ndarray:
    if kind == "isotonic":
        return np.asarray(np.interp(scores, found[0], found[1]))
    return sigmoid(found[0] * logit(scores) + found[1])
