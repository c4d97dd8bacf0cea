"""Calibration: the probability of a label given one score."""

__all__ = [
    "SMALLEST_PROBABILITY",
    "fit_isotonic",
    "fit_logistic",
    "isotonic_pools",
    "logit",
    "sigmoid",
]

import numpy as np

from harmonrank.metrics._sort import argsort
from harmonrank.support.kernel import kernel

SMALLEST_PROBABILITY = 1e-12
"""Probabilities are kept this far from 0 and 1 where their logit is taken."""
_RIDGE = 1e-3


def logit(p: np.ndarray) -> np.ndarray:
    """Return log(p / (1 − p)); 0 and 1 count as 1e-12 away from the edge.

    >>> logit(np.array([0.5, 0.0])).round(2)
    array([  0.  , -27.63])
    """
    p = np.clip(np.asarray(p, dtype=np.float64), SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
    odds: np.ndarray = np.log(p) - np.log1p(-p)
    return odds


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(−x)) without overflow."""
    small = np.exp(-np.abs(x))
    p: np.ndarray = np.where(x >= 0, 1.0, small) / (1.0 + small)
    return p


def fit_logistic(
    scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> tuple[float, float]:
    """Return slope and intercept of P(y=1 | s) = σ(slope·logit(s) + intercept), by Newton steps.

    A weak pull towards slope 1 and intercept 0, of the force of a thousandth of a row, keeps
    separable data finite. A score that speaks against its label is turned round: the slope may
    be negative. Only the ratios of the weights matter.

    >>> s = np.linspace(0.05, 0.95, 200)
    >>> y = np.arange(200) % 2
    >>> slope, intercept = fit_logistic(s, y)
    >>> abs(slope) < 0.05, abs(intercept) < 0.05
    (True, True)
    """
    x = logit(scores)
    w = np.ones(len(x)) if weight is None else weight / weight.mean()
    X = np.stack([x, np.ones_like(x)], axis=1)
    prior, ridge = np.array([1.0, 0.0]), _RIDGE * np.eye(2)

    def loss_of(theta: np.ndarray) -> float:
        away = theta - prior
        return _log_loss(X @ theta, labels, w) + 0.5 * float(away @ ridge @ away)

    pi = np.clip(np.average(labels, weights=w), SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
    theta = np.array([0.0, np.log(pi / (1 - pi))])
    best = loss_of(theta)
    for _ in range(100):
        p = sigmoid(X @ theta)
        gradient = X.T @ (w * (labels - p)) + ridge @ (prior - theta)
        step = np.linalg.solve((X.T * (w * p * (1 - p))) @ X + ridge, gradient)
        # Newton may overshoot where probabilities are tiny; half steps always come down.
        while (loss := loss_of(theta + step)) > best + 1e-12 * abs(best):
            step = step / 2
        theta, best = theta + step, min(best, loss)
        if np.abs(step).max() < 1e-10:
            break
    return float(theta[0]), float(theta[1])


def _log_loss(x: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> float:
    return float(weight @ (np.logaddexp(0, x) - labels * x))


def fit_isotonic(
    scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return knots (score, probability) of the best non-decreasing fit, one per block.

    To interpolate between the knots keeps unequal scores apart; beyond the first and the last
    knot the fit is flat. Rows of weight 0 do not count.

    >>> fit_isotonic(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1]))
    (array([0.1 , 0.25, 0.4 ]), array([0. , 0.5, 1. ]))
    """
    x, y, _ = isotonic_pools(scores, labels, weight)
    return x, y


def isotonic_pools(
    scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the knots of `fit_isotonic` with the weight of the rows behind each.

    >>> isotonic_pools(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1]))[2]
    array([1., 2., 1.])
    """
    scores = np.asarray(scores, dtype=np.float64)
    order = argsort(scores)
    w = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
    return _pool_labels(scores[order], np.asarray(labels, dtype=np.float64)[order], w[order])


@kernel
def _pool_labels(
    scores: np.ndarray, labels: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, top, i = len(scores), -1, 0
    x, y, w = np.empty(n), np.empty(n), np.empty(n)
    while i < n:
        # Equal scores are one knot, whatever their labels.
        score, mass, positive = scores[i], 0.0, 0.0
        while i < n and scores[i] == score:
            mass += weight[i]
            positive += weight[i] * labels[i]
            i += 1
        if mass <= 0:
            continue
        top += 1
        x[top], y[top], w[top] = score, positive / mass, mass
        while top > 0 and y[top - 1] >= y[top]:
            total = w[top - 1] + w[top]
            x[top - 1] = (w[top - 1] * x[top - 1] + w[top] * x[top]) / total
            y[top - 1] = (w[top - 1] * y[top - 1] + w[top] * y[top]) / total
            w[top - 1] = total
            top -= 1
    return x[: top + 1].copy(), y[: top + 1].copy(), w[: top + 1].copy()
