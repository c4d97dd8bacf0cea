"""Logistic: the probability of each objective from all scores and the context, best weights."""

__all__ = ["FARTHEST", "Logistic", "LogisticConfig"]

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from harmonrank.data import ContextEncoder, Log, Schema
from harmonrank.data.rows.blocks import Blocks, HeldBlocks
from harmonrank.fusion.baselines.regression import (
    Design,
    RidgeRows,
    fit_ridge_blocks,
    log_loss,
    predict,
)
from harmonrank.fusion.fitting.fit import Fit
from harmonrank.fusion.fitting.row_blocks import RowsInBlocks, logit_scale, row_blocks
from harmonrank.fusion.probability import ProbabilityMethod
from harmonrank.fusion.state import ContextState
from harmonrank.metrics import logit
from harmonrank.model.fit_rows import FitRows, RowCounts
from harmonrank.support.options import Positive
from harmonrank.support.storage.arrays import Array

_FIRST_ROWS = 50_000
# Keeps separable labels finite, and nothing else.
_OWN_RIDGE = 1e-3
FARTHEST = 8.0
"""Beyond this a standardised logit tells the upstream model's clipping, not its opinion."""
_LARGEST_LOGIT = 1e3


@dataclass(frozen=True)
class LogisticConfig:
    """How strongly coefficients may be pulled to 0, in rows; validation chooses per objective."""

    ridges: Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=100)] = (
        3000.0,
        300.0,
        30.0,
        3.0,
    )


class Logistic(ProbabilityMethod):
    """p_m = σ(θ₀ + Σ_k θ_k x_k + Σ_c θ_{c, value}), x the standardised logits of all scores.

    What a good engineer would try first: one regression per objective on the scores of all
    objectives and the context, ridge chosen on the validation rows, optimal weights on top. The
    objective's own score is not shrunk: a strong ridge leaves its calibration, as `closed-form`.
    """

    name = "logistic"
    takes = ("graded", "given")
    fits_on_workers = True
    Config = LogisticConfig
    State = ContextState

    _encoder: ContextEncoder
    _centre: np.ndarray
    _spread: np.ndarray
    _theta: np.ndarray

    fits_blocks = True

    def _fit(self, fit: Fit) -> None:
        self._encoder = ContextEncoder.fit(fit.train.context)
        train, valid = (
            row_blocks(log, self._encoder, None if log.shown is None else log.shown.astype(float))
            for log in (fit.train, fit.valid)
        )
        self._learn(train, valid, fit.train.schema, fit.seed)

    def _fit_blocks(self, fit: RowsInBlocks) -> None:
        self._encoder = fit.encoder
        self._learn(fit.train, fit.valid, fit.schema, fit.seed)

    def _learn(
        self, train: Blocks[FitRows], valid: Blocks[FitRows], schema: Schema, seed: int
    ) -> None:
        self._standardise(train)
        if not schema.given:
            self._theta = self._fitted(train, valid, seed)
            return
        # Objectives that are given the same are fitted together, on the rows that show them.
        given = [schema.given.get(name) for name in schema.names]
        found: dict[str | None, np.ndarray] = {}
        for m, parent in enumerate(given):
            if parent not in found:
                exam = _shown(valid, m)
                rows = _shown(train, m)
                assert rows is not None, "each objective has two different labels"
                found[parent] = self._fitted(rows, valid if exam is None else exam, seed)
        columns = [found[parent][:, m] for m, parent in enumerate(given)]
        self._theta = np.stack(columns, axis=1)

    def _standardise(self, rows: Blocks[FitRows]) -> None:
        self._centre, spread = logit_scale(rows)
        # A score that never changes says nothing; any scale will do.
        self._spread = np.where(spread > 0, spread, 1.0)

    def _fitted(self, train: Blocks[FitRows], valid: Blocks[FitRows], seed: int) -> np.ndarray:
        """Return the coefficients of all objectives, of the ridge that validation prefers."""
        given = self._centre, self._spread, self._encoder.slots
        rows, counts = train.made(_ridge_rows, *given), RowCounts.of(train)
        theta = self._first_guess(rows, counts, seed)
        thetas = []
        # From strong to weak: each ridge starts where the stronger one ended.
        for ridge in sorted(self.config.ridges, reverse=True):
            theta = fit_ridge_blocks(rows, _decay(theta.shape, ridge), theta)
            thetas.append(theta)
        losses, _ = valid.total(_log_losses, np.array(thetas), *given)
        low, high = zip(*valid.each(_label_range), strict=True)
        absent = np.min(low, axis=0) >= np.max(high, axis=0)
        chosen = np.empty_like(theta)
        for m, best in enumerate(_choose(losses, absent)):
            chosen[:, m] = thetas[best][:, m]
        return chosen

    def _first_guess(self, rows: Blocks[RidgeRows], counts: RowCounts, seed: int) -> np.ndarray:
        """Fit a sample of the rows, so that the whole of them takes few steps."""
        pi = counts.prevalence
        theta = np.zeros((1 + len(pi) + sum(self._encoder.slots), len(pi)))
        theta[0] = np.log(pi / (1 - pi))
        if counts.rows < 4 * _FIRST_ROWS:
            return theta
        rng = np.random.default_rng([seed, 0x106])
        some = np.sort(rng.choice(counts.rows, _FIRST_ROWS, replace=False, shuffle=False))
        part = HeldBlocks(rows.each(_taken, some))
        decay = _decay(theta.shape, max(self.config.ridges))
        return fit_ridge_blocks(part, decay, theta, tolerance=1e-3)

    def _probabilities(self, log: Log) -> np.ndarray:
        given = self._centre, self._spread, self._encoder.slots
        return predict(_design(log.scores, log.codes(self._encoder), *given), self._theta)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"centre": self._centre, "spread": self._spread, "theta": self._theta}
        return {"context": self._encoder.to_list()}, arrays

    def _declare(self, state: ContextState) -> dict[str, Array]:
        M, slots = len(self.schema.names), state.encoder(self.schema).slots
        return {
            "centre": Array((M,), low=-_LARGEST_LOGIT, high=_LARGEST_LOGIT),
            "spread": Array((M,), low=1e-30, high=_LARGEST_LOGIT),
            "theta": Array((1 + M + sum(slots), M)),
        }

    def _restore(self, state: ContextState, arrays: dict[str, np.ndarray]) -> None:
        self._encoder = state.encoder(self.schema)
        self._centre, self._spread = arrays["centre"], arrays["spread"]
        self._theta = arrays["theta"]


def _shown(blocks: Blocks[FitRows], m: int) -> Blocks[FitRows] | None:
    """Return the rows that show objective m; None if there are none."""
    first, counts = zip(*blocks.each(_shown_count, m), strict=True)
    places = np.cumsum([0, *counts])
    if not places[-1]:
        return None
    return blocks.made(_shown_rows, m, dict(zip(first, places.tolist(), strict=False)))


def _shown_count(rows: FitRows, m: int) -> tuple[int, int]:
    shares = rows.shares
    return rows.first, rows.rows if shares is None else int((shares[:, m] > 0).sum())


def _shown_rows(rows: FitRows, m: int, places: dict[int, int]) -> FitRows:
    """Return those rows of a block, whose first one has this place among all of them."""
    some = rows if rows.shares is None else rows.taken(np.flatnonzero(rows.shares[:, m] > 0))
    return replace(some, first=places[rows.first], shares=None)


def _design(
    scores: np.ndarray,
    codes: np.ndarray,
    centre: np.ndarray,
    spread: np.ndarray,
    slots: tuple[int, ...],
) -> Design:
    x = np.clip((logit(scores) - centre) / spread, -FARTHEST, FARTHEST)
    return Design.of(x, codes, slots)


def _ridge_rows(rows: FitRows, *given: Any) -> RidgeRows:
    """Return the regressors of a block; `given` are centre, spread and slots."""
    design, labels = _design(rows.scores, rows.codes, *given), rows.labels
    known = labels.astype(np.float64 if labels.dtype.kind == "f" else np.uint8, copy=False)
    found = design.numbers, design.codes, design.size, np.ascontiguousarray(known), rows.weight
    return RidgeRows(*found, rows.first)


def _taken(rows: RidgeRows, some: np.ndarray) -> RidgeRows:
    """Return those rows of a block whose places in the log are asked for."""
    low, high = np.searchsorted(some, [rows.first, rows.first + len(rows.numbers)])
    index = some[low:high] - rows.first
    weight = None if rows.weight is None else rows.weight[index]
    return RidgeRows(rows.numbers[index], rows.codes[index], rows.size, rows.labels[index], weight)


def _log_losses(rows: FitRows, thetas: np.ndarray, *given: Any) -> tuple[np.ndarray, float]:
    """Return the log loss of a block by each choice of coefficients, and the rows' weight."""
    design, weight = _design(rows.scores, rows.codes, *given), rows.weights()
    total = float(weight.sum())
    if not rows.rows:
        return np.zeros((len(thetas), thetas.shape[2])), total
    losses = [log_loss(predict(design, theta), rows.labels, weight) for theta in thetas.copy()]
    return np.array(losses) * total, total


def _label_range(rows: FitRows) -> tuple[np.ndarray, np.ndarray]:
    return rows.labels.min(axis=0, initial=1), rows.labels.max(axis=0, initial=0)


def _decay(shape: tuple[int, ...], ridge: float) -> np.ndarray:
    """Return how much each coefficient is shrunk: neither the intercept nor the own score."""
    decay = np.full(shape, ridge)
    decay[0] = 0.0
    own = np.arange(shape[1])
    decay[1 + own, own] = _OWN_RIDGE
    return decay


def _choose(losses: np.ndarray, absent: np.ndarray) -> list[int]:
    """Return the best ridge of each objective; the middle one where validation lacks a class."""
    best = losses.argmin(axis=0)
    return [int(b) for b in np.where(absent, (len(losses) - 1) // 2, best)]
