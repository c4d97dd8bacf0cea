"""Request levels: what the labels of a request say about all of its rows.

Upstream scores carry parts that all candidates of a request share, such as how active its user is,
and these may be worth more or less than what sets candidates apart. With h the logits of heads that
look at rows alone, h̄ their mean over the request, objective m has the logit

    η = θ₀ + Σ_j θ_j h_j + Σ_j ϑ_j h̄_j + b_g,   b_g ~ N(0, τ²),

eq. 5 of docs/per-request.md: θ are the slopes within a request, ϑ what its mean adds (Mundlak,
1978), b what remains of its level. Newton steps find θ, ϑ and all b together, b by itself in each
request. The evidence (eq. 5 of docs/default-method.md) decides how far slopes move away from those
of the heads, θ_m = 1 and all else 0; τ² is what the sums of a request's residuals vary beyond what
their labels do by themselves, and 0 where that is no more than chance. So where requests are all
alike nothing moves.
"""

__all__ = ["RequestLevels", "fit_levels"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.support.kernel import inline_kernel, kernel
from harmonrank.support.logistic import sigmoid, sigmoid_and_loss, sigmoid_of
from harmonrank.support.newton import Likelihood, Prior, Rounds, Step, maximise, settled
from harmonrank.support.parallel import each_part

_STEPS = 15
_INNER_STEPS = 3
_ENOUGH = 0.05  # Posterior standard deviations.
_ROUNDS = Rounds(most=50, enough=_ENOUGH, steady=_ENOUGH)
_LOST = 1e-3  # Nats that the levels' own steps leave.
_FARTHEST = 2.0  # A level moves by at most so much at a time.
_SMALLEST_LEVEL, _LARGEST_LEVEL = 1e-4, 9.0  # τ²
_PROVEN = 2.0  # Standard errors above 0, from which on levels are believed to differ.
# Groups of coefficients that share a precision: own slope, other slopes, means.
_OWN, _OTHERS, _MEANS = range(3)
_START_PRECISION = (10.0, 30.0, 30.0)


@dataclass(frozen=True)
class RequestLevels:
    """Logits of every objective that know the labels of the request.

    Attributes:
        logits: (rows, M) η.
        theta: (M, 1 + 2M): θ₀, θ, ϑ.
        variance: (M,) τ².
    """

    logits: np.ndarray
    theta: np.ndarray
    variance: np.ndarray

    @property
    def probabilities(self) -> np.ndarray:
        """Return the probability of each row and objective given its request, (rows, M)."""
        return sigmoid(self.logits)


def fit_levels(
    h: np.ndarray, starts: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None
) -> RequestLevels:
    """Fit slopes, means and levels of all objectives.

    Args:
        h: (rows, M) logits of heads that look at rows alone; rows of a request lie together.
        starts: Where each request begins, and the end.
        labels: (rows, M) of 0 and 1.
        weight: (rows,) sample weights.
    """
    rows, M = h.shape
    # In units of the heads' spread, coefficients of all objectives are comparable.
    unit = np.maximum(h.std(axis=0), 1e-6)
    h = np.ascontiguousarray(h / unit, np.float64)
    w = np.ones(rows) if weight is None else np.ascontiguousarray(weight, np.float64)
    y = np.ascontiguousarray(labels.T, np.float64)
    mean = np.add.reduceat(h, starts[:-1]) / np.diff(starts)[:, None]
    at_rest = np.concatenate([np.zeros((M, 1)), np.diag(unit), np.zeros((M, M))], axis=1)
    prior = Prior(at_rest, np.array(_START_PRECISION), _groups(M))
    given = [(h, mean, starts, of_labels, w) for of_labels in y]
    theta, variance = at_rest, np.full(M, _SMALLEST_LEVEL)
    level = np.zeros((M, len(starts) - 1))

    def look(theta: np.ndarray) -> Likelihood:
        there = Likelihood(np.zeros(M), np.zeros(theta.shape), np.zeros((*theta.shape, 1 + 2 * M)))

        def add(m: int) -> None:
            sums = there.slope[m], there.curvature[m]
            there.value[m] = _add(*given[m], theta[m], variance[m], level[m], *sums)

        each_part(add, M)
        return there

    def propose(theta: np.ndarray, there: Likelihood) -> Step:
        nonlocal prior
        step, prior, far = settled(
            theta, prior, lambda prior: prior.top(theta, there), Prior.updated, _ROUNDS
        )
        return step._replace(last=far < _ENOUGH)

    for levels in (False, True):
        if levels:
            # Slopes without levels leave residuals that tell how far levels differ.
            sums = [_residuals(*given[m], theta[m]) for m in range(M)]
            variance = np.array([_level_variance(*of_request) for of_request in sums])
        theta = maximise(look, theta, propose, _STEPS, _LOST).checked("Request levels").theta
    logits = np.empty((rows, M))
    for m in range(M):
        _write(h, mean, starts, theta[m], level[m], logits[:, m])
    return RequestLevels(logits, theta / np.concatenate([[1.0], unit, unit]), variance)


def _groups(M: int) -> np.ndarray:
    """Return the group of each coefficient: intercept, slopes of every head, means."""
    slopes = np.where(np.eye(M, dtype=bool), _OWN, _OTHERS)
    return np.concatenate([np.full((M, 1), -1), slopes, np.full((M, M), _MEANS)], axis=1)


def _level_variance(residual: np.ndarray, noise: np.ndarray, pull: np.ndarray) -> float:
    """Return τ² of one objective, from sums over each request.

    Var Σr = Σ w²pq + c (Σ w pq)², where c is e^τ² − 1 for rare events. Requests count by how much
    they tell about c, which depends on c.

    Args:
        residual: Σ w (y − p).
        noise: Σ w² p(1−p).
        pull: Σ w p(1−p).
    """
    c = 0.0
    for _ in range(10):
        believed = 1 / (noise + c * pull**2 + 1e-300) ** 2
        size = (believed * pull**4).sum()
        c = max(float((believed * pull**2 * (residual**2 - noise)).sum() / max(size, 1e-300)), 0.0)
    # A sum of few events has the fourth moment of Poisson's density.
    spread = noise + 2 * (noise + c * pull**2) ** 2
    error = float(np.sqrt((believed**2 * pull**4 * spread).sum()) / max(size, 1e-300))
    variance = np.log1p(c) if c > _PROVEN * error else 0.0
    return float(np.clip(variance, _SMALLEST_LEVEL, _LARGEST_LEVEL))


@inline_kernel
def _linear(h: Any, mean: Any, theta: Any) -> float:
    """Return θ₀ + θ·h + ϑ·h̄."""
    M = h.size
    total: float = theta[0]
    for j in range(M):
        total += theta[1 + j] * h[j] + theta[1 + M + j] * mean[j]
    return total


@kernel
def _add(
    h: Any, mean: Any, starts: Any, y: Any, w: Any, theta: Any, variance: float, level: Any,
    slope: Any, curved: Any,
) -> float:  # fmt: skip
    """Bring each level to its top; add up gradient and curvature of θ and ϑ there.

    Return the log-likelihood, levels with their prior.

    A level that follows θ takes c cᵀ/k off the curvature, c = Σ v x of its request and k its own
    curvature.
    """
    M = h.shape[1]
    eta = np.empty(np.max(np.diff(starts)))
    s, c, x = np.empty(M), np.empty(1 + 2 * M), np.empty(1 + 2 * M)
    S = np.empty((M, M))
    value = 0.0
    for g in range(starts.size - 1):
        first, end = starts[g], starts[g + 1]
        for i in range(first, end):
            eta[i - first] = _linear(h[i], mean[g], theta)
        b, k = level[g], 1.0
        for _ in range(_INNER_STEPS):
            pull, k = -b / variance, 1.0 / variance
            for i in range(first, end):
                p = sigmoid_of(eta[i - first] + b)
                pull += w[i] * (y[i] - p)
                k += w[i] * p * (1.0 - p)
            b += min(max(pull / k, -_FARTHEST), _FARTHEST)
        level[g] = b
        v, r = 0.0, 0.0
        s[:], S[:], x[:] = 0.0, 0.0, 0.0
        value -= 0.5 * b * b / variance
        for i in range(first, end):
            p, loss = sigmoid_and_loss(eta[i - first] + b, y[i])
            value -= w[i] * loss
            miss, spread = w[i] * (y[i] - p), w[i] * p * (1.0 - p)
            r, v = r + miss, v + spread
            for j in range(M):
                x[1 + j] += miss * h[i, j]
                s[j] += spread * h[i, j]
                for n in range(j + 1):
                    S[j, n] += spread * h[i, j] * h[i, n]
        k = v + 1.0 / variance
        x[0], c[0] = r, v
        for j in range(M):
            x[1 + M + j], c[1 + j], c[1 + M + j] = r * mean[g, j], s[j], v * mean[g, j]
        for a in range(1 + 2 * M):
            slope[a] += x[a]
            for n in range(a + 1):
                # Σ v x xᵀ: constants of the request come out of the sum.
                if a == 0:
                    whole = v
                elif a <= M:
                    whole = s[a - 1] if n == 0 else S[a - 1, n - 1]
                else:
                    whole = mean[g, a - 1 - M] * c[n]
                curved[a, n] += whole - c[a] * c[n] / k
    for a in range(1 + 2 * M):
        for n in range(a):
            curved[n, a] = curved[a, n]
    result: float = value
    return result


@kernel
def _residuals(h: Any, mean: Any, starts: Any, y: Any, w: Any, theta: Any) -> Any:
    """Return Σ w (y − p), Σ w² p(1−p) and Σ w p(1−p) of each request, without levels."""
    out = np.zeros((3, starts.size - 1))
    for g in range(starts.size - 1):
        for i in range(starts[g], starts[g + 1]):
            p = sigmoid_of(_linear(h[i], mean[g], theta))
            out[0, g] += w[i] * (y[i] - p)
            out[1, g] += w[i] * w[i] * p * (1.0 - p)
            out[2, g] += w[i] * p * (1.0 - p)
    return out


@kernel
def _write(h: Any, mean: Any, starts: Any, theta: Any, level: Any, out: Any) -> None:
    """Write η of every row."""
    for g in range(starts.size - 1):
        for i in range(starts[g], starts[g + 1]):
            out[i] = _linear(h[i], mean[g], theta) + level[g]
