"""Logistic: the probability of each objective from all scores and the context."""

__all__ = ["FARTHEST", "Logistic", "LogisticConfig", "LogisticFit", "logit_scale"]

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from harmonrank.data.rows.blocks import Blocks, HeldBlocks, rows_in_block
from harmonrank.fusion.baselines.regression import (
    Design,
    RidgeRows,
    fit_ridge,
    log_loss,
    predict,
)
from harmonrank.fusion.method import Method
from harmonrank.fusion.protocol import TrainingRows, Traits
from harmonrank.metrics import logit
from harmonrank.model.fit_rows import FitRows, RowCounts
from harmonrank.support.options import Positive
from harmonrank.support.storage.arrays import Array

_FIRST_ROWS = 50_000
# Only keeps coefficients finite where labels are separable.
_OWN_RIDGE = 1e-3
FARTHEST = 8.0
"""A standardised logit beyond this reflects the upstream model's clipping, not its opinion."""
_LARGEST_LOGIT = 1e3


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of every objective.

    Attributes:
        centre, spread: (M,) of each score's logit.
        theta: (1 + M + slots, M): intercept, standardised logits, context values.
        slots: Codes per context feature.
    """

    centre: Annotated[np.ndarray, Array(("M",), low=-_LARGEST_LOGIT, high=_LARGEST_LOGIT)]
    spread: Annotated[np.ndarray, Array(("M",), low=1e-30, high=_LARGEST_LOGIT)]
    theta: Annotated[np.ndarray, Array(("coefficients", "M"))]
    slots: tuple[int, ...]

    @staticmethod
    def sizes(M: int, slots: tuple[int, ...]) -> dict[str, int]:
        """Return the named sizes of its arrays."""
        return {"coefficients": 1 + M + sum(slots)}

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the probability of each objective, (rows, M)."""
        given = self.centre, self.spread, self.slots
        return predict(_design(scores, codes, *given), self.theta)


@dataclass(frozen=True)
class LogisticConfig:
    """Candidate ridge strengths, in rows, of which validation chooses one per objective."""

    name: ClassVar[str] = "logistic"
    traits: ClassVar[Traits] = Traits(workers=True)
    state: ClassVar[type] = LogisticFit

    ridges: Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=100)] = (
        3000.0,
        300.0,
        30.0,
        3.0,
    )

    def fit(self, rows: TrainingRows) -> LogisticFit:
        """Fit all ridges, from strong to weak, and keep the best of each objective."""
        centre, spread = logit_scale(rows.train)
        # A constant score carries no information, so any scale will do.
        spread = np.where(spread > 0, spread, 1.0)
        search = _Search(self.ridges, (centre, spread, rows.slots), rows.seed)
        return LogisticFit(centre, spread, self._theta(rows, search), rows.slots)

    def _theta(self, rows: TrainingRows, search: "_Search") -> np.ndarray:
        if not rows.schema.given:
            return search.best(rows.train, rows.valid)
        # Objectives with the same condition are fitted in one call, on the rows that show them.
        given = [rows.schema.given.get(name) for name in rows.schema.names]
        fits: dict[str | None, np.ndarray] = {}
        for m, parent in enumerate(given):
            if parent not in fits:
                train, valid = _shown(rows.train, m), _shown(rows.valid, m)
                assert train is not None, "each objective has two different labels"
                fits[parent] = search.best(train, rows.valid if valid is None else valid)
        return np.stack([fits[parent][:, m] for m, parent in enumerate(given)], axis=1)


class Logistic(Method):
    """p_m = σ(θ₀ + Σ_k θ_k x_k + Σ_c θ_{c, value}), x the standardised logits of all scores.

    One regression per objective on the scores of all objectives and the context. The ridge is
    chosen on the validation rows, and the probabilities are fused with the optimal weights. The
    objective's own score is not shrunk, so that with a strong ridge it equals `closed-form`.
    """

    Config = LogisticConfig


@dataclass(frozen=True)
class _Search:
    """Fits with several ridges and lets validation choose.

    Attributes:
        ridges: The ridges to try.
        scale: Centre and spread of the logits, and slots.
        seed: Decides the rows of the first guess.
    """

    ridges: tuple[float, ...]
    scale: tuple[Any, ...]
    seed: int

    def best(self, train: Blocks[FitRows], valid: Blocks[FitRows]) -> np.ndarray:
        """Return the coefficients of all objectives, of the ridge that validation prefers."""
        rows, counts = train.made(_ridge_rows, *self.scale), RowCounts.of(train)
        theta = self._first_guess(rows, counts)
        thetas = []
        # From strong to weak: each ridge starts where the stronger one ended.
        for ridge in sorted(self.ridges, reverse=True):
            theta = fit_ridge(rows, _decay(theta.shape, ridge), theta)
            thetas.append(theta)
        losses, _ = valid.total(_log_losses, np.array(thetas), *self.scale)
        low, high = zip(*valid.each(_label_range), strict=True)
        absent = np.min(low, axis=0) >= np.max(high, axis=0)
        chosen = np.empty_like(theta)
        for m, best in enumerate(_choose(losses, absent)):
            chosen[:, m] = thetas[best][:, m]
        return chosen

    def _first_guess(self, rows: Blocks[RidgeRows], counts: RowCounts) -> np.ndarray:
        """Fit a sample of the rows, so that the whole of them takes few steps."""
        pi = counts.prevalence
        theta = np.zeros((1 + len(pi) + sum(self.scale[2]), len(pi)))
        theta[0] = logit(pi)
        if counts.rows < 4 * _FIRST_ROWS:
            return theta
        rng = np.random.default_rng([self.seed, 0x106])
        some = np.sort(rng.choice(counts.rows, _FIRST_ROWS, replace=False, shuffle=False))
        part = HeldBlocks(rows.each(_taken, some))
        decay = _decay(theta.shape, max(self.ridges))
        return fit_ridge(part, decay, theta, tolerance=1e-3)


def logit_scale(rows: Blocks[FitRows]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of each score's logit, (M,) each."""
    mass, total = rows.total(_first_moment)
    centre = total / mass
    (squares,) = rows.total(_second_moment, centre)
    return centre, np.sqrt(squares / mass)


def _first_moment(rows: FitRows) -> tuple[float, np.ndarray]:
    w = rows.weights()
    return float(w.sum()), (w[:, None] * logit(rows.scores)).sum(axis=0)


def _second_moment(rows: FitRows, centre: np.ndarray) -> tuple[np.ndarray]:
    return ((rows.weights()[:, None] * (logit(rows.scores) - centre) ** 2).sum(axis=0),)


def _shown(blocks: Blocks[FitRows], m: int) -> Blocks[FitRows] | None:
    """Return the rows that show objective m; None if there are none."""
    first, counts = zip(*blocks.each(_shown_count, m), strict=True)
    starts = np.cumsum([0, *counts])
    if not starts[-1]:
        return None
    return blocks.made(_shown_rows, m, dict(zip(first, starts.tolist(), strict=False)))


def _shown_count(rows: FitRows, m: int) -> tuple[int, int]:
    shares = rows.shares
    return rows.first, rows.rows if shares is None else int((shares[:, m] > 0).sum())


def _shown_rows(rows: FitRows, m: int, starts: dict[int, int]) -> FitRows:
    """Return those rows of a block; `starts` has the number of its first among all of them."""
    some = rows if rows.shares is None else rows.taken(np.flatnonzero(rows.shares[:, m] > 0))
    return replace(some, first=starts[rows.first], shares=None)


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
    columns = design.numbers, design.codes, design.size, np.ascontiguousarray(known), rows.weight
    return RidgeRows(*columns, rows.first)


def _taken(rows: RidgeRows, some: np.ndarray) -> RidgeRows:
    """Return those rows of a block whose row numbers in the log are asked for."""
    index = rows_in_block(some, rows.first, len(rows.numbers))
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
