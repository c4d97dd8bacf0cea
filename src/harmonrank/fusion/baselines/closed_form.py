"""Closed form: calibrate every score on its own, weight by 1/(π(1−π)), add."""

__all__ = ["ClosedForm", "ClosedFormConfig"]

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from harmonrank.data import Log
from harmonrank.data.rows.blocks import Blocks
from harmonrank.fusion.baselines.calibrations import fit_calibrations
from harmonrank.fusion.fitting.fit import Fit
from harmonrank.fusion.fitting.row_blocks import RowsInBlocks, row_blocks
from harmonrank.fusion.probability import ProbabilityMethod
from harmonrank.fusion.quality.block_areas import SortedRows, curve_of, sorted_rows
from harmonrank.fusion.state import NoState
from harmonrank.metrics import fit_isotonic, logit, sigmoid
from harmonrank.model.fit_rows import FitRows
from harmonrank.support.storage.arrays import Array


@dataclass(frozen=True)
class ClosedFormConfig:
    """How each score is calibrated: 'logistic' (two numbers) or 'isotonic' (any rising curve)."""

    calibration: Literal["logistic", "isotonic"] = "logistic"


class ClosedForm(ProbabilityMethod):
    """Fuses by s = Σ_m w_m p_m / (π_m(1−π_m)), p_m the calibrated score m.

    Nothing is better if each score says all about its own objective and nothing about others.

    >>> import polars as pl
    >>> from harmonrank.data import Schema
    >>> table = pl.DataFrame({"p_buy": [0.1, 0.2, 0.3, 0.4] * 9, "buy": [0, 1, 0, 1] * 9})
    >>> model = ClosedForm(calibration="isotonic").fit(table, Schema({"buy": "p_buy"}), valid=table)
    >>> model.score(table)[:4]
    array([0.        , 1.33333333, 2.66666667, 4.        ])
    """

    name = "closed-form"
    uses_valid = False
    takes = ("graded", "given")
    fits_on_workers = True
    Config = ClosedFormConfig

    _curves: list[tuple[np.ndarray, np.ndarray]]

    fits_blocks = True

    def _fit(self, fit: Fit) -> None:
        log = fit.train
        if self.config.calibration == "logistic":
            shares = None if log.shown is None else log.shown.astype(np.float64)
            self._calibrate(row_blocks(log, shares=shares))
            return
        self._curves = []
        for m in range(len(log.schema.names)):
            labels, weight = log.shown_labels(m)
            scores = log.scores[:, m] if log.shown is None else log.scores[log.shown[:, m], m]
            self._curves.append(fit_isotonic(scores, labels.astype(np.float64), weight))

    def _fit_blocks(self, fit: RowsInBlocks) -> None:
        if self.config.calibration == "logistic":
            self._calibrate(fit.train)
            return
        objectives = range(len(fit.weights))
        self._curves = [curve_of(_sorted_by(fit.train, m), fit.rows) for m in objectives]

    def _calibrate(self, rows: Blocks[FitRows]) -> None:
        curves = fit_calibrations(rows)
        self._curves = [(slope, intercept) for slope, intercept in curves[:, :, None]]

    def _probabilities(self, log: Log) -> np.ndarray:
        p = np.empty(log.scores.shape)
        for m, (first, second) in enumerate(self._curves):
            if self.config.calibration == "logistic":
                p[:, m] = sigmoid(first[0] * logit(log.scores[:, m]) + second[0])
            else:
                p[:, m] = np.interp(log.scores[:, m], first, second)
        return p

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {f"{m}/x": x for m, (x, _) in enumerate(self._curves)}
        return {}, arrays | {f"{m}/y": y for m, (_, y) in enumerate(self._curves)}

    def _declare(self, state: NoState) -> dict[str, Array]:  # noqa: ARG002
        declared = {}
        for m in range(len(self.schema.names)):
            size = 1 if self.config.calibration == "logistic" else f"knots of {m}"
            curve = self.config.calibration == "isotonic"
            declared[f"{m}/x"] = Array((size,), rising=True)
            declared[f"{m}/y"] = Array((size,), low=0.0, high=1.0) if curve else Array((size,))
        return declared

    def _restore(self, state: NoState, arrays: dict[str, np.ndarray]) -> None:
        del state
        objectives = range(len(self.schema.names))
        self._curves = [(arrays[f"{m}/x"], arrays[f"{m}/y"]) for m in objectives]


def _sorted_by(blocks: Blocks[FitRows], m: int) -> Iterator[SortedRows]:
    """Yield the rows of each block in the order of score m, with the label of its objective."""
    for number in range(len(blocks)):
        rows = blocks[number]
        if rows.shares is not None:
            rows = rows.taken(rows.shares[:, m] > 0)
        if rows.rows:
            scores = rows.scores[:, m].astype(np.float64)
            yield sorted_rows(scores, rows.labels[:, m : m + 1], rows.weight)
