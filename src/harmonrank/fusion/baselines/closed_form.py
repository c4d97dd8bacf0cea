"""Closed forms: add the scores with weights 1/(π(1−π)), calibrated or as upstream gives them.

Each score is calibrated by a curve of its own, fitted on sums over blocks of rows.
"""

__all__ = [
    "ClosedForm",
    "ClosedFormConfig",
    "PrevalenceWeights",
    "PrevalenceWeightsConfig",
    "fit_calibrations",
]

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.fusion.method import Method
from harmonrank.fusion.protocol import TrainingRows, Traits
from harmonrank.metrics import (
    fit_isotonic,
    fit_logistic_curves,
    logistic_likelihood,
    logit,
    sigmoid,
)
from harmonrank.model.fit_rows import FitRows
from harmonrank.support.newton import Likelihood
from harmonrank.support.storage.arrays import Array


@dataclass(frozen=True)
class _Rows:
    """A block: (rows, M) logits and labels, and label weights, (rows, M) or (rows, 1)."""

    logits: np.ndarray
    labels: np.ndarray
    counts: np.ndarray | None

    @property
    def weights(self) -> np.ndarray:
        return np.ones((len(self.logits), 1)) if self.counts is None else self.counts


def fit_calibrations(blocks: Blocks[FitRows]) -> np.ndarray:
    """Return slope and intercept of P(y_m=1 | s_m) = σ(slope·logit(s_m) + intercept), (M, 2).

    All objectives at once, with the results of `harmonrank.metrics.fit_logistic`. The rows are
    looked at about ten times.
    """
    rows = blocks.made(_prepared)
    seen, mass, positive = rows.total(_masses)

    def look(theta: np.ndarray) -> Likelihood:
        value, slope, curvature = rows.total(_likelihood, theta)
        # Only ratios of weights matter: the pull is measured in rows of mean weight.
        scale = (seen / mass)[:, None]
        return Likelihood(value * scale[:, 0], slope * scale, curvature * scale[:, :, None])

    return fit_logistic_curves(look, positive / mass).theta


def _prepared(rows: FitRows) -> _Rows:
    counts, labels = rows.counts(), rows.labels
    if counts is not None and counts.ndim == 1:
        counts = counts[:, None]
    known = labels.astype(np.float64 if labels.dtype.kind == "f" else np.uint8, copy=False)
    return _Rows(logit(rows.scores), np.ascontiguousarray(known), counts)


def _masses(rows: _Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how many rows show each objective, their weight, and that of the positive ones."""
    counts = np.broadcast_to(rows.weights, rows.labels.shape)
    return (counts > 0).sum(axis=0), counts.sum(axis=0), (counts * rows.labels).sum(axis=0)


def _likelihood(rows: _Rows, theta: np.ndarray) -> Likelihood:
    return logistic_likelihood(rows.logits, rows.labels, rows.weights, theta)


@dataclass(frozen=True, eq=False)
class LogisticCurves:
    """σ(slope·logit(s) + intercept) of each score."""

    slope: Annotated[np.ndarray, Array(("M",))]
    intercept: Annotated[np.ndarray, Array(("M",))]

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the calibrated scores."""
        return sigmoid(self.slope * logit(scores) + self.intercept)


@dataclass(frozen=True, eq=False)
class RisingCurve:
    """Straight lines between knots."""

    x: Annotated[np.ndarray, Array(("knots",), rising=True)]
    y: Annotated[np.ndarray, Array(("knots",), low=0.0, high=1.0)]


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The calibration of every score, by one of two kinds of curves."""

    logistic: LogisticCurves | None
    isotonic: tuple[RisingCurve, ...] = ()

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Return the calibrated scores, (rows, M)."""
        if self.logistic is not None:
            return self.logistic.probabilities(scores)
        columns = zip(scores.T, self.isotonic, strict=True)
        return np.stack([np.interp(s, curve.x, curve.y) for s, curve in columns], axis=1)


@dataclass(frozen=True)
class ClosedFormConfig:
    """How each score is calibrated: 'logistic' (two numbers) or 'isotonic' (any rising curve)."""

    name: ClassVar[str] = "closed-form"
    traits: ClassVar[Traits] = Traits(validates=False, workers=True)
    state: ClassVar[type] = Calibrated

    calibration: Literal["logistic", "isotonic"] = "logistic"

    def fit(self, rows: TrainingRows) -> Calibrated:
        """Calibrate each score by its own labels."""
        if self.calibration == "logistic":
            slope, intercept = fit_calibrations(rows.train).T
            return Calibrated(LogisticCurves(slope.copy(), intercept.copy()))
        objectives = range(len(rows.weights))
        curves = [fit_isotonic(*_one_objective(rows.train, m)) for m in objectives]
        return Calibrated(None, tuple(RisingCurve(x, y) for x, y in curves))


class ClosedForm(Method):
    """Fuses by s = Σ_m w_m p_m / (π_m(1−π_m)), p_m the calibrated score m.

    It is the best fusion if each score carries all information on its own objective and none on
    the others.

    >>> import polars as pl
    >>> from harmonrank.data import Schema
    >>> table = pl.DataFrame({"p_buy": [0.1, 0.2, 0.3, 0.4] * 9, "buy": [0, 1, 0, 1] * 9})
    >>> model = ClosedForm(calibration="isotonic").fit(table, Schema({"buy": "p_buy"}), valid=table)
    >>> model.score(table)[:4]
    array([0.        , 1.33333333, 2.66666667, 4.        ])
    """

    Config = ClosedFormConfig


def _one_objective(blocks: Blocks[FitRows], m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return score, label and weight of all rows that show an objective."""
    parts = []
    for number in range(len(blocks)):
        rows = blocks[number]
        if rows.shares is not None:
            rows = rows.taken(rows.shares[:, m] > 0)
        parts.append((rows.scores[:, m].copy(), rows.labels[:, m].copy(), rows.weights()))
    scores, labels, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    return scores, labels, weight


@dataclass(frozen=True)
class AsTheyCome:
    """Takes the scores as upstream gave them."""

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Return the scores."""
        return scores.astype(np.float64, copy=False)


@dataclass(frozen=True)
class PrevalenceWeightsConfig:
    """There are no options."""

    name: ClassVar[str] = "prevalence-weights"
    traits: ClassVar[Traits] = Traits(validates=False, workers=True)
    state: ClassVar[type] = AsTheyCome

    def fit(self, rows: TrainingRows) -> AsTheyCome:  # noqa: ARG002
        """Learn nothing: the prevalences are known."""
        return AsTheyCome()


class PrevalenceWeights(Method):
    """Fuses by s = Σ_m w_m p̂_m / (π_m(1−π_m)), with the upstream scores p̂_m uncalibrated.

    It learns only the prevalence π, so it cannot over-fit: with little data it is hard to beat.
    """

    Config = PrevalenceWeightsConfig
