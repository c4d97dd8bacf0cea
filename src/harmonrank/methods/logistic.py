"""Logistic: the probability of each objective from all scores and the context, best weights."""

__all__ = ["FARTHEST", "Logistic", "LogisticConfig"]

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from harmonrank.data import ContextEncoder, Log
from harmonrank.data.arrays import Array
from harmonrank.methods.fit import Fit
from harmonrank.methods.probability import ProbabilityMethod
from harmonrank.methods.regression import Design, fit_ridge, log_loss, predict
from harmonrank.methods.state import ContextState
from harmonrank.metrics import logit
from harmonrank.options import Positive

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
    Config = LogisticConfig
    State = ContextState

    _encoder: ContextEncoder
    _centre: np.ndarray
    _spread: np.ndarray
    _theta: np.ndarray

    def _fit(self, fit: Fit) -> None:
        self._encoder = ContextEncoder.fit(fit.train.context)
        x, weight = logit(fit.train.scores), _weight(fit.train)
        self._centre = np.average(x, axis=0, weights=weight)
        spread = np.sqrt(np.average((x - self._centre) ** 2, axis=0, weights=weight))
        # A score that never changes says nothing; any scale will do.
        self._spread = np.where(spread > 0, spread, 1.0)
        if fit.train.shown is None:
            self._theta = self._fitted(fit)
            return
        # Objectives that the same rows show are fitted together, on those rows.
        found = None
        for shown in np.unique(fit.train.shown, axis=1).T:
            some = (fit.train.shown == shown[:, None]).all(axis=0)
            part = self._fitted(_shown_rows(fit, shown, int(np.flatnonzero(some)[0])))
            found = np.empty_like(part) if found is None else found
            found[:, some] = part[:, some]
        assert found is not None
        self._theta = found

    def _fitted(self, fit: Fit) -> np.ndarray:
        """Return the coefficients of all objectives, of the ridge that validation prefers."""
        weight = _weight(fit.train)
        design, exam = self._design(fit.train), self._design(fit.valid)
        labels, answers = fit.train.known_labels(), fit.valid.known_labels()

        theta = self._first_guess(fit, design)
        losses, thetas = [], []
        # From strong to weak: each ridge starts where the stronger one ended.
        for ridge in sorted(self.config.ridges, reverse=True):
            theta = fit_ridge(design, labels, weight, _decay(theta.shape, ridge), theta)
            losses.append(log_loss(predict(exam, theta), answers, _weight(fit.valid)))
            thetas.append(theta)
        chosen = np.empty_like(theta)
        for m, best in enumerate(_choose(np.array(losses), answers)):
            chosen[:, m] = thetas[best][:, m]
        return chosen

    def _first_guess(self, fit: Fit, design: Design) -> np.ndarray:
        """Fit a sample of the rows, so that the whole of them takes few steps."""
        labels = fit.train.known_labels()
        pi = np.clip(np.average(labels, axis=0, weights=fit.train.sample_weight), 1e-9, 1 - 1e-9)
        theta = np.zeros((design.size, len(pi)))
        theta[0] = np.log(pi / (1 - pi))
        if len(design.numbers) < 4 * _FIRST_ROWS:
            return theta
        rng = np.random.default_rng([fit.seed, 0x106])
        some = rng.choice(len(design.numbers), _FIRST_ROWS, replace=False)
        part = Design(design.numbers[some], design.codes[some], design.size)
        decay = _decay(theta.shape, max(self.config.ridges))
        weight = _weight(fit.train)[some]
        return fit_ridge(part, labels[some], weight, decay, theta, tolerance=1e-3)

    def _design(self, log: Log) -> Design:
        x = np.clip((logit(log.scores) - self._centre) / self._spread, -FARTHEST, FARTHEST)
        return Design.of(x, log.codes(self._encoder), self._encoder.slots)

    def _probabilities(self, log: Log) -> np.ndarray:
        return predict(self._design(log), self._theta)

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


def _shown_rows(fit: Fit, shown: np.ndarray, m: int) -> Fit:
    """Return the rows that show objective m; validation rows as they are if none does."""
    valid = fit.valid
    there = np.flatnonzero(valid.shown[:, m]) if valid.shown is not None else np.empty(0, int)
    valid = valid.take(there) if len(there) else valid
    return replace(fit, train=fit.train.take(np.flatnonzero(shown)), valid=valid)


def _weight(log: Log) -> np.ndarray:
    return np.ones(log.rows) if log.sample_weight is None else log.sample_weight


def _decay(shape: tuple[int, ...], ridge: float) -> np.ndarray:
    """Return how much each coefficient is shrunk: neither the intercept nor the own score."""
    decay = np.full(shape, ridge)
    decay[0] = 0.0
    own = np.arange(shape[1])
    decay[1 + own, own] = _OWN_RIDGE
    return decay


def _choose(losses: np.ndarray, answers: np.ndarray) -> list[int]:
    """Return the best ridge of each objective; the middle one where validation lacks a class."""
    best = losses.argmin(axis=0)
    absent = (answers == answers[0]).all(axis=0)
    return [int(b) for b in np.where(absent, (len(losses) - 1) // 2, best)]
