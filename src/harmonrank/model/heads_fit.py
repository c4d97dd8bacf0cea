"""Fitting the heads: Newton steps for the coefficients, the evidence for how far to shrink them.

Every group of coefficients has a normal prior whose precision λ all objectives share. MacKay's
update λ = γ/Σ(θ − mean)² maximises the evidence, γ being the number of coefficients that the data
decide. The first four groups also share their mean: a rare objective borrows from common ones, and
a group that explains nothing is shrunk to nothing. So nothing is tuned and no row is set aside.
"""

__all__ = ["fit_heads"]

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from os import cpu_count

import numpy as np

from harmonrank.kernel import kernel
from harmonrank.model.coordinate import fit_coordinate
from harmonrank.model.heads import GROUPS, Heads
from harmonrank.model.law import Law, distinct_contexts, fit_law

# Sums are taken in this many pieces whatever the threads, so they do not depend on them.
_PIECES = 8
_STEPS = 25
_START_PRECISION = (4.0, 4.0, 4.0, 4.0, 100.0, 30.0)
_LEAST, _MOST = 1e-2, 1e6
# Posterior standard deviations; smaller steps no longer move the ranking.
_ENOUGH = 0.15
# What a plain calibration of each score would be; the first four groups.
_PLAIN = np.array([1.0, 0.0, 0.0, 0.0])


def fit_heads(
    logits: np.ndarray,
    codes: np.ndarray,
    slots: tuple[int, ...],
    labels: np.ndarray,
    weight: np.ndarray | None = None,
    on_step: Callable[[int, int], None] = lambda *_: None,
) -> Heads:
    """Fit coordinates, their law, the heads of all objectives and the precisions they share.

    Args:
        logits: (rows, M) of the scores.
        codes: (rows, features) of the context.
        slots: Codes per feature.
        labels: (rows, M) of 0 and 1.
        weight: (rows,) sample weights.
        on_step: Called with the number of the step and the most there can be.
    """
    M, D = logits.shape[1], 4 + logits.shape[1] + sum(slots)
    coordinate = fit_coordinate(logits, labels, weight)
    places = coordinate(logits)
    law = fit_law(places, codes, slots, weight)
    data = _Data.of(law, places, codes, slots, labels, weight)
    prevalence = np.clip(data.weight @ labels / data.weight.sum(), 1e-9, 1 - 1e-9)
    theta = np.zeros((M, D))
    theta[:, 0], theta[:, 1] = np.log(prevalence / (1 - prevalence)), 1.0
    heads = Heads(coordinate, law, slots, theta, np.array(_START_PRECISION), _PLAIN)
    group = _group_of(M, D)
    for step in range(_STEPS):
        heads, change = _step(heads, data, group)
        on_step(step + 1, _STEPS)
        if change < _ENOUGH:
            break
    on_step(_STEPS, _STEPS)
    return heads


def _group_of(M: int, D: int) -> np.ndarray:
    """Return the group of each coefficient; −1 for the intercept, which is free."""
    return np.array([-1, 0, 1, 2, 3, *[4] * (M - 1), *[5] * (D - 4 - M)])


def _step(heads: Heads, data: "_Data", group: np.ndarray) -> tuple[Heads, float]:
    """Take a Newton step of each head, then update what they share; return the largest change.

    Changes are measured in posterior standard deviations.
    """
    M, D = heads.theta.shape
    prior = np.zeros(D)
    prior[1 : 1 + len(_PLAIN)] = heads.shared
    decay = np.where(group >= 0, heads.precision[group], 1e-6)
    theta, known, change = heads.theta.copy(), np.zeros(len(GROUPS)), 0.0
    for m in range(M):
        theta[m], spread, moved = _newton(data, m, heads.theta[m], prior, decay)
        change = max(change, moved)
        for g in range(len(GROUPS)):
            of_group = group == g
            known[g] += of_group.sum() - heads.precision[g] * spread[of_group].sum()
    shared = _shared_means(theta)
    prior[1 : 1 + len(_PLAIN)] = shared
    precision = heads.precision.copy()
    for g in range(len(GROUPS)):
        energy = ((theta - prior)[:, group == g] ** 2).sum()
        if (group == g).any():
            precision[g] = np.clip(known[g] / max(energy, 1e-12), _LEAST, _MOST)
    drift = np.abs(np.log(precision / heads.precision))[heads.precision < _MOST / 10].max(initial=0)
    return replace(heads, theta=theta, precision=precision, shared=shared), max(change, drift / 10)


def _shared_means(theta: np.ndarray) -> np.ndarray:
    """Return the mean over objectives of the first four groups, shrunk to (1, 0, 0, 0).

    The shrinkage is that of one more objective which is what a plain calibration would be.
    """
    total = theta[:, 1 : 1 + len(_PLAIN)].sum(axis=0)
    means: np.ndarray = (total + _PLAIN) / (len(theta) + 1)
    return means


def _newton(
    data: "_Data", m: int, theta: np.ndarray, prior: np.ndarray, decay: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the next coefficients, the posterior variances, and the step in their deviations."""
    _, gradient, hessian = data.sums(m, theta)
    covariance = np.linalg.inv(hessian + np.diag(decay))
    step = covariance @ (gradient - decay * (theta - prior))
    spread = np.diag(covariance)
    # A logit that jumps by more than 2 has left the region that the second derivatives describe.
    reach = np.abs(step[:5]).max()
    step = step * min(1.0, 2.0 / max(reach, 1e-12))
    return theta + step, spread, float(np.abs(step / np.sqrt(spread)).max())


@dataclass(frozen=True)
class _Data:
    """The rows as the kernels want them, with what depends on the context alone in tables."""

    law: Law
    contexts: np.ndarray
    of_row: np.ndarray
    away: np.ndarray
    labels: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    surprise: np.ndarray

    @classmethod
    def of(
        cls,
        law: Law,
        places: np.ndarray,
        codes: np.ndarray,
        slots: tuple[int, ...],
        labels: np.ndarray,
        weight: np.ndarray | None,
    ) -> "_Data":
        contexts, of_row = distinct_contexts(codes, slots)
        deviation = np.sqrt(np.exp(law.log_variance))
        return cls(
            law,
            contexts,
            of_row.astype(np.int32),
            ((places - law.centre_of(contexts)[of_row]) / deviation).astype(np.float32),
            np.ascontiguousarray(labels.T, dtype=np.float32),
            np.ones(len(places)) if weight is None else weight.astype(np.float64),
            law.mean_of(contexts) / deviation,
            law.variance_of(contexts) / np.exp(law.log_variance),
            # In units of deviations the surprise is C⁻¹ scaled on both sides.
            law.precision_of(contexts) * np.outer(deviation, deviation),
        )

    def sums(self, m: int, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return log likelihood, gradient and negative Hessian of head m at theta."""
        M = self.away.shape[1]
        K = 4 + M
        effects = self.law.sum_of(theta[K:, None], self.contexts)[:, 0]
        offset = effects + theta[0] + theta[4] * self.mean[:, m]
        run = partial(
            _head_sums,
            self.away,
            self.of_row,
            self.labels[m],
            self.weight,
            np.ascontiguousarray(self.surprise[:, m]),
            np.ascontiguousarray(self.variance[:, m] - 1.0),
            np.ascontiguousarray(self.mean[:, m]),
            offset,
            theta[:K].copy(),
            m,
        )
        cuts = np.linspace(0, len(self.away), _PIECES + 1).astype(np.int64)
        with ThreadPoolExecutor(min(_PIECES, cpu_count() or 1)) as pool:
            parts = list(pool.map(run, cuts[:-1], cuts[1:]))
        likelihood = sum(part[0] for part in parts)
        table: np.ndarray = np.sum([part[1] for part in parts], axis=0)
        dense: np.ndarray = np.sum([part[2] for part in parts], axis=0)
        return likelihood, *self._spread_out(table, dense, K)

    def _spread_out(
        self, table: np.ndarray, dense: np.ndarray, K: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Turn sums per context into sums per context value."""
        slots = int(self.law.mean.shape[0])
        gradient, hessian = np.zeros(K + slots), np.zeros((K + slots, K + slots))
        gradient[:K] = dense[0]
        hessian[:K, :K] = dense[1:] + np.tril(dense[1:], -1).T
        for a, first in enumerate(self.law.first):
            row = K + first + self.contexts[:, a]
            np.add.at(gradient, row, table[:, K])
            np.add.at(hessian[:, :K], row, table[:, :K])
            for b, other in enumerate(self.law.first):
                np.add.at(hessian, (row, K + other + self.contexts[:, b]), table[:, 0])
        hessian[:K, K:] = hessian[K:, :K].T
        return gradient, hessian


@kernel
def _head_sums(  # type: ignore[no-untyped-def]
    away, of_row, labels, weight, surprise, excess, mean, offset, theta, m, low, high
):
    """Return the sums of head m over rows low to high.

    The table holds, per context, Σ h·x_k and in its last column Σ (y − p); `dense` holds the
    gradient of the K numbers and below it the lower half of Σ h·x xᵀ, h = p(1−p) times weight.
    """
    M, K = away.shape[1], theta.size
    table = np.zeros((len(offset), K + 1))
    dense = np.zeros((K + 1, K))
    x = np.empty(K)
    likelihood = 0.0
    for i in range(low, high):
        c = of_row[i]
        r = 0.0
        for j in range(M):
            r += surprise[c, j] * away[i, j]
        x[0] = 1.0
        x[1] = away[i, m] + mean[c]
        x[2] = excess[c] * r
        x[3] = r
        x[4] = mean[c]
        k = 5
        for j in range(M):
            if j != m:
                x[k] = away[i, j]
                k += 1
        logit = offset[c]
        for k in range(1, K):
            if k != 4:
                logit += theta[k] * x[k]
        small = np.exp(-abs(logit))
        p = (1.0 if logit >= 0 else small) / (1.0 + small)
        likelihood += weight[i] * (labels[i] * logit - max(logit, 0.0) - np.log1p(small))
        g = weight[i] * (labels[i] - p)
        h = weight[i] * p * (1.0 - p)
        table[c, K] += g
        for k in range(K):
            hx = h * x[k]
            table[c, k] += hx
            dense[0, k] += g * x[k]
            for j in range(k + 1):
                dense[k + 1, j] += hx * x[j]
    return likelihood, table, dense
