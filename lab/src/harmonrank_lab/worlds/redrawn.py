"""Redrawn labels: a fixed function of what a fusion sees, fitted to true probabilities."""

__all__ = ["RedrawnTruth"]

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonrank.metrics import logit, sigmoid

Floats = NDArray[np.float64]

_UNITS, _STEPS, _RIDGE = 128, 8, 1.0


@dataclass(frozen=True, eq=False)
class RedrawnTruth:
    """A network of scores and context: p_m = σ(βᵀ_m [1, x, tanh(Ax + a)]).

    x are the standardised logits of all scores and the context one-hot. The hidden units are
    random, the weights β are fitted to true probabilities by Newton's steps on the cross entropy,
    so p is close to the true probabilities given the scores and the context. Labels drawn
    from p make it the exact probability given what a fusion sees.

    Attributes:
        sizes: the number of categories of every context feature.
        centre: (objectives,), mean of the logits of the scores.
        spread: (objectives,), their standard deviation.
        hidden: A, (inputs, units).
        offset: a, (units,).
        weights: β, (1 + inputs + units, objectives).
    """

    sizes: Mapping[str, int]
    centre: Floats
    spread: Floats
    hidden: Floats
    offset: Floats
    weights: Floats

    @classmethod
    def fit(
        cls,
        scores: Floats,
        context: Mapping[str, NDArray[np.int16]],
        sizes: Mapping[str, int],
        truth: Floats,
        rng: np.random.Generator,
    ) -> "RedrawnTruth":
        """Return the network that is closest to true probabilities, (rows, objectives)."""
        z, M = logit(scores), scores.shape[1]
        inputs = M + sum(sizes.values())
        # A unit sees all scores, and the context about as strongly as one of them.
        hidden = (
            rng.standard_normal((inputs, _UNITS))
            * np.where(np.arange(inputs) < M, 0.6, 0.4)[:, None]
        )
        offset = rng.standard_normal(_UNITS)
        empty = np.zeros((1 + inputs + _UNITS, M))
        net = cls(sizes, z.mean(0), z.std(0), hidden, offset, empty)
        X = net._features(scores, context)
        weights = np.stack([_logistic(X, column) for column in truth.T], axis=1)
        return cls(sizes, net.centre, net.spread, hidden, offset, weights)

    def __call__(self, scores: Floats, context: Mapping[str, NDArray[np.int16]]) -> Floats:
        """Return p, (rows, objectives)."""
        return sigmoid(self._features(scores, context) @ self.weights)

    def _features(self, scores: Floats, context: Mapping[str, NDArray[np.int16]]) -> Floats:
        x = np.hstack(
            [
                (logit(scores) - self.centre) / self.spread,
                *(np.eye(size)[context[name]] for name, size in self.sizes.items()),
            ]
        )
        return np.hstack([np.ones((len(x), 1)), x, np.tanh(x @ self.hidden + self.offset)])


def _logistic(X: Floats, p: Floats) -> Floats:
    """Return β of the least cross entropy to probabilities p, with a small ridge."""
    beta = np.zeros(X.shape[1])
    beta[0] = logit(p.mean())
    ridge = np.full(X.shape[1], _RIDGE)
    ridge[0] = 0

    def loss(beta: Floats) -> float:
        z = X @ beta
        return float(np.logaddexp(0, z).sum() - p @ z + ridge @ beta**2 / 2)

    least = loss(beta)
    for _ in range(_STEPS):
        q = sigmoid(X @ beta)
        hessian = (X * (q * (1 - q))[:, None]).T @ X + np.diag(ridge)
        step = np.linalg.solve(hessian, X.T @ (p - q) - ridge * beta)
        # Rare objectives are far from quadratic at first: a whole step may overshoot.
        while loss(beta + step) > least and abs(step).max() > 1e-9:
            step /= 2
        beta, least = beta + step, loss(beta + step)
    return beta
