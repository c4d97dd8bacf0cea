"""Closed form: calibrate every score on its own, weight by 1/(π(1−π)), add."""

__all__ = ["ClosedForm", "ClosedFormConfig"]

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.fusion.baselines.calibrations import fit_calibrations
from harmonrank.fusion.fitting.rows import TrainingRows
from harmonrank.fusion.method import Method
from harmonrank.fusion.protocol import Traits
from harmonrank.fusion.quality.block_areas import SortedRows, curve_of, sorted_rows
from harmonrank.metrics import logit, sigmoid
from harmonrank.model.fit_rows import FitRows
from harmonrank.support.storage.arrays import Array


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
    """The calibration of every score; one of both kinds of curves is there."""

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
        curves = [curve_of(_sorted_by(rows.train, m), rows.rows) for m in objectives]
        return Calibrated(None, tuple(RisingCurve(x, y) for x, y in curves))


class ClosedForm(Method):
    """Fuses by s = Σ_m w_m p_m / (π_m(1−π_m)), p_m the calibrated score m.

    Nothing is better if each score says all about its own objective and nothing about others.

    >>> import polars as pl
    >>> from harmonrank.data import Schema
    >>> table = pl.DataFrame({"p_buy": [0.1, 0.2, 0.3, 0.4] * 9, "buy": [0, 1, 0, 1] * 9})
    >>> model = ClosedForm(calibration="isotonic").fit(table, Schema({"buy": "p_buy"}), valid=table)
    >>> model.score(table)[:4]
    array([0.        , 1.33333333, 2.66666667, 4.        ])
    """

    Config = ClosedFormConfig


def _sorted_by(blocks: Blocks[FitRows], m: int) -> Iterator[SortedRows]:
    """Yield the rows of each block in the order of score m, with the label of its objective."""
    for number in range(len(blocks)):
        rows = blocks[number]
        if rows.shares is not None:
            rows = rows.taken(rows.shares[:, m] > 0)
        if rows.rows:
            scores = rows.scores[:, m].astype(np.float64)
            yield sorted_rows(scores, rows.labels[:, m : m + 1], rows.weight)
