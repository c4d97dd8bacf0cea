"""Click model: an item is answered if it is looked at, by its place, and if it is wanted.

P(any feedback | x, place k) = θ_k ρ(x), the position-based model: eqs. 1 and 2 of docs/position.md.
Its likelihood is the one that regression-EM climbs. EM takes of the order of 1/ρ rounds, which for
rare feedback are thousands, so its maximum is found by Fisher scoring instead: a dozen rounds.
"""

__all__ = ["ClickModel", "RelevanceFeatures"]

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from harmonrank.data import ContextEncoder, Log
from harmonrank.support.logistic import (
    SMALLEST_SCORE,
    log_likelihoods,
    logit,
    score_logit,
    sigmoid,
)
from harmonrank.support.newton import Likelihood, Prior, Step, maximise

_ROUNDS = 60
_ENOUGH = 1e-3  # in standard errors
_REACH = 4.0
_KNOTS = (0.1, 0.5, 0.9)
_MOST_VALUES = 30
_MOST_SLOPES = 150
# Coefficients of standardised features; keeps separable rows finite, and hardly more.
_RIDGE = 1.0
_FREE = 1e-10
_BLOCK = 1 << 15
_LARGEST = 1 - SMALLEST_SCORE


@dataclass(frozen=True, eq=False)
class ClickModel:
    """θ_k = exp(log_chance_k) and ρ(x) = σ(x·β), at the maximum of the likelihood.

    Attributes:
        beta: (features,).
        log_chance: (places,), 0 for the first place, unless all were given.
        error: (places,) standard errors of `log_chance`; 0 where it was given.
    """

    beta: np.ndarray
    log_chance: np.ndarray
    error: np.ndarray

    @classmethod
    def fit(
        cls,
        features: np.ndarray,
        place: np.ndarray,
        answered: np.ndarray,
        weight: np.ndarray,
        log_chance: np.ndarray | None = None,
    ) -> "ClickModel":
        """Maximise Σ_i v_i log P(answered_i | x_i, place_i) − ½ ridge |β|².

        Args:
            features: (rows, features), the first of them 1.
            place: (rows,) which of the places, from 0.
            answered: (rows,) whether there was any feedback.
            weight: v, (rows,).
            log_chance: (places,) log θ if the curve is known; else it is estimated, up to a
                factor that feedback cannot tell from relevance: the first place has 1.
        """
        t = np.zeros(int(place.max(initial=0)) + 1) if log_chance is None else log_chance
        free = len(t) - 1 if log_chance is None else 0
        rate = np.clip((weight @ answered) / (weight @ np.exp(t)[place]), SMALLEST_SCORE, 0.9)
        rows = _Rows(features, place, answered.astype(np.float64), weight, t, free)
        D = features.shape[1]
        group = np.r_[1, np.zeros(D - 1, np.int64), np.full(free, 1)]
        variance = np.empty((1, D + free))
        prior = Prior(np.zeros(D + free), np.array([_RIDGE, _FREE]), group)

        def propose(theta: np.ndarray, there: Likelihood) -> Step:
            nonlocal variance
            target, variance = prior.top(theta, there)
            last = np.abs((target - theta) / np.sqrt(variance)).max() < _ENOUGH
            return Step(target, prior.penalty, last)

        start = np.r_[logit(rate), np.zeros(D - 1 + free)][None]
        maximum = maximise(rows.likelihood, start, propose, _ROUNDS).checked("The click model")
        error = np.r_[np.zeros(len(t) - free), np.sqrt(variance[0, D:])]
        return cls(maximum.theta[0, :D], rows.log_chance(maximum.theta[0]), error)

    def relevance(self, features: Callable[[slice], np.ndarray], rows: int) -> np.ndarray:
        """Return ρ(x) of each row, (rows,); features are made a block at a time."""
        rho = np.empty(rows)
        for first in range(0, rows, _BLOCK):
            block = slice(first, min(first + _BLOCK, rows))
            rho[block] = sigmoid(features(block) @ self.beta)
        return np.minimum(rho, _LARGEST)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows, and log θ of each place as far as it is known: the last `free` are coefficients."""

    features: np.ndarray
    place: np.ndarray
    answered: np.ndarray
    weight: np.ndarray
    known: np.ndarray
    free: int

    def log_chance(self, theta: np.ndarray) -> np.ndarray:
        """Return log θ of each place."""
        return np.append(self.known[: len(self.known) - self.free], theta[len(theta) - self.free :])

    def likelihood(self, theta: np.ndarray) -> Likelihood:
        """Return the log-likelihood of β and the free places, with the expected curvature."""
        D, places, fixed = self.features.shape[1], len(self.known), len(self.known) - self.free
        rho = sigmoid(self.features @ theta[0, :D])
        p = np.minimum(np.exp(self.log_chance(theta[0]))[self.place] * rho, _LARGEST)
        value = self.weight @ log_likelihoods(p, self.answered)
        pull = self.weight * (self.answered - p) / (1 - p)  # by log P
        information = self.weight * p / (1 - p)
        by_place = np.bincount(self.place, pull, places)[fixed:]
        slope = np.append(self.features.T @ (pull * (1 - rho)), by_place)
        curve = np.zeros((len(slope), len(slope)))
        for first in range(0, len(rho), _BLOCK):
            block = slice(first, first + _BLOCK)
            x, left = self.features[block], 1 - rho[block]
            at = self.place[block][:, None] == np.arange(fixed, places)
            curve[:D, :D] += x.T @ (x * (information[block] * left**2)[:, None])
            curve[:D, D:] += x.T @ (at * (information[block] * left)[:, None])
        curve[D:, :D] = curve[:D, D:].T
        curve[D:, D:] = np.diag(np.bincount(self.place, information, places)[fixed:])
        return Likelihood(np.array([value]), slope[None], curve[None])


@dataclass(frozen=True, eq=False)
class RelevanceFeatures:
    """What relevance may depend on: a function from rows to features, made by some rows.

    A one; of each score its standardised logit, its hinges at three quantiles and whether it is
    missing; products of two logits; indicators of context values, and slopes by them where they
    are not too many. Position must not enter: it decides whether an item is looked at alone.

    Attributes:
        centre, spread: (M,) of the logits.
        knots: (knots, M), where hinges begin.
        lost: (M,) whether some row misses the score.
        encoder: Of the context.
    """

    centre: np.ndarray
    spread: np.ndarray
    knots: np.ndarray
    lost: np.ndarray
    encoder: ContextEncoder

    @classmethod
    def of(cls, log: Log) -> "RelevanceFeatures":
        """Measure what features are made of."""
        logits = score_logit(log.scores)
        with np.errstate(all="ignore"):
            centre, spread = np.nanmean(logits, axis=0), np.nanstd(logits, axis=0)
        centre, spread = np.nan_to_num(centre), np.where(spread > 0, spread, 1.0)
        encoder = ContextEncoder.fit(log.context, _MOST_VALUES)
        knots = np.nanquantile(np.clip((logits - centre) / spread, -_REACH, _REACH), _KNOTS, axis=0)
        return cls(centre, spread, knots, np.isnan(logits).any(axis=0), encoder)

    def __call__(self, rows: Log) -> np.ndarray:
        """Return the features of rows, (rows, features)."""
        logits, slots = score_logit(rows.scores), self.encoder.slots
        x = np.clip((logits - self.centre) / self.spread, -_REACH, _REACH)
        M, gaps = x.shape[1], np.isnan(x)
        by_context = M * sum(slots) <= _MOST_SLOPES
        x[gaps] = 0.0
        parts = [np.ones((len(x), 1)), x, gaps[:, self.lost].astype(np.float64)]
        parts += [np.maximum(x - knot, 0) for knot in self.knots]
        parts += [x[:, [m]] * x[:, m:] for m in range(M)]
        codes = rows.codes(self.encoder)
        for feature, size in enumerate(slots):
            one = (codes[:, [feature]] == np.arange(size)).astype(np.float64)
            parts.append(one)
            if by_context:
                parts += [one * x[:, [m]] for m in range(M)]
        return np.concatenate(parts, axis=1)
