"""Calibration: the probability of a label given one score."""

from collections.abc import Callable
from typing import Any

import numpy as np

from harmonrank.metrics._sort import argsort
from harmonrank.support.kernel import kernel
from harmonrank.support.logistic import logit, sigmoid_and_loss
from harmonrank.support.newton import Likelihood, Maximum, Prior, Step, maximise
from harmonrank.support.parallel import each_part

_PRIOR = Prior(np.array([1.0, 0.0]), np.array([1e-3]), np.zeros(2, np.int64))
_STEPS, _SMALLEST_STEP = 100, 1e-10
_PIECES = 16  # Of rows, whatever the threads, so that sums do not depend on them.


def fit_logistic(
    scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> tuple[float, float]:
    """Return slope and intercept of P(y=1 | s) = σ(slope·logit(s) + intercept), by Newton steps.

    A weak pull towards slope 1 and intercept 0, of the force of a thousandth of a row, keeps
    separable data finite. The slope may be negative, for a score that falls where its label rises.
    Only the ratios of the weights matter.

    >>> s = np.linspace(0.05, 0.95, 200)
    >>> y = np.arange(200) % 2
    >>> slope, intercept = fit_logistic(s, y)
    >>> abs(slope) < 0.05, abs(intercept) < 0.05
    (True, True)
    """
    x = logit(scores)[:, None]
    y = np.asarray(labels)[:, None]
    w = np.ones(len(x)) if weight is None else weight / weight.mean()
    given = x, y, w[:, None].astype(np.float64)
    prevalence = np.average(labels, weights=w)
    maximum = fit_logistic_curves(lambda at: logistic_likelihood(*given, at), prevalence[None])
    slope, intercept = maximum.theta[0]
    return float(slope), float(intercept)


def fit_logistic_curves(
    look: Callable[[np.ndarray], Likelihood], prevalence: np.ndarray
) -> Maximum:
    """Return slopes and intercepts, (M, 2), by the pull of `fit_logistic`.

    Args:
        look: Their log-likelihoods, of rows of mean weight 1.
        prevalence: (M,) the mean of the labels.
    """

    def propose(theta: np.ndarray, there: Likelihood) -> Step:
        target, _ = _PRIOR.top(theta, there)
        enough = _SMALLEST_STEP * np.maximum(1.0, np.abs(theta).max(axis=1))
        return Step(target, _PRIOR.penalty, np.abs(target - theta).max(axis=1) < enough)

    start = np.stack([np.zeros(len(prevalence)), logit(prevalence)], axis=1)
    return maximise(look, start, propose, _STEPS).checked("A logistic calibration")


def logistic_likelihood(
    x: np.ndarray, labels: np.ndarray, weight: np.ndarray, theta: np.ndarray
) -> Likelihood:
    """Return the log-likelihoods of P(y_m = 1) = σ(slope_m x_m + intercept_m).

    Args:
        x: (rows, M).
        labels: (rows, M), from 0 to 1.
        weight: (rows, M), or (rows, 1) where rows count the same for all.
        theta: (M, 2), slopes and intercepts.
    """
    theta = theta.copy()  # as an engine hands over what is read-only
    sums = np.zeros((_PIECES, len(theta), 6))
    each_part(lambda piece: _add_curves(piece, x, labels, weight, theta, sums), _PIECES)
    total = sums.sum(axis=0)
    return Likelihood(total[:, 0], total[:, 1:3], total[:, [3, 4, 4, 5]].reshape(-1, 2, 2))


@kernel
def _add_curves(piece: int, x: Any, labels: Any, weight: Any, theta: Any, sums: Any) -> None:
    """Add a piece's log-likelihoods, gradients and curvatures."""
    n, M = x.shape
    last = weight.shape[1] - 1
    for i in range(piece * n // _PIECES, (piece + 1) * n // _PIECES):
        for m in range(M):
            t = theta[m, 0] * x[i, m] + theta[m, 1]
            p, loss = sigmoid_and_loss(t, labels[i, m])
            v = weight[i, min(m, last)]
            g, h = v * (labels[i, m] - p), v * p * (1.0 - p)
            sums[piece, m, 0] -= v * loss
            sums[piece, m, 1] += g * x[i, m]
            sums[piece, m, 2] += g
            sums[piece, m, 3] += h * x[i, m] * x[i, m]
            sums[piece, m, 4] += h * x[i, m]
            sums[piece, m, 5] += h


def fit_isotonic(
    scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return knots (score, probability) of the best non-decreasing fit, one per block.

    To interpolate between the knots keeps unequal scores apart; beyond the first and the last
    knot the fit is flat. Rows of weight 0 do not count.

    >>> fit_isotonic(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1]))
    (array([0.1 , 0.25, 0.4 ]), array([0. , 0.5, 1. ]))
    """
    scores = np.asarray(scores, dtype=np.float64)
    order = argsort(scores)
    w = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
    return _pool_labels(scores[order], np.asarray(labels, dtype=np.float64)[order], w[order])


@kernel
def _pool_labels(
    scores: np.ndarray, labels: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
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
    return x[: top + 1].copy(), y[: top + 1].copy()
