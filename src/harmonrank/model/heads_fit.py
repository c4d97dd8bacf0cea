"""Fitting the heads: Newton steps for the coefficients, the evidence for how far to shrink them.

Every group of coefficients has a normal prior whose precision λ all objectives share. MacKay's
update λ = γ/Σ(θ − mean)² maximises the evidence, γ being the number of coefficients that the data
decide. The first four groups also share their mean: a rare objective borrows from common ones, and
a group that explains nothing is shrunk to nothing. So nothing is tuned and no row is set aside.
"""

__all__ = ["fit_heads"]

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from harmonrank.model.coordinate import fit_coordinate
from harmonrank.model.heads import GROUPS, Heads
from harmonrank.model.heads_sums import HeadSums
from harmonrank.model.law import fit_law

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
    data = HeadSums.of(law, places, codes, slots, labels, weight)
    prevalence = np.clip(np.average(labels, axis=0, weights=weight), 1e-9, 1 - 1e-9)
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


def _step(heads: Heads, data: HeadSums, group: np.ndarray) -> tuple[Heads, float]:
    """Take a Newton step of each head, then update what they share; return the largest change.

    Changes are measured in posterior standard deviations.
    """
    M, D = heads.theta.shape
    prior = np.zeros(D)
    prior[1 : 1 + len(_PLAIN)] = heads.shared
    decay = np.where(group >= 0, heads.precision[group], 1e-6)
    theta, known, change = heads.theta.copy(), np.zeros(len(GROUPS)), 0.0
    sums = data.at(heads.theta)
    for m in range(M):
        slope, curvature = data.derivatives(m, *sums)
        theta[m], spread, moved = _newton(slope, curvature, heads.theta[m], prior, decay)
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
    gradient: np.ndarray,
    hessian: np.ndarray,
    theta: np.ndarray,
    prior: np.ndarray,
    decay: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the next coefficients, the posterior variances, and the step in their deviations."""
    covariance = np.linalg.inv(hessian + np.diag(decay))
    step = covariance @ (gradient - decay * (theta - prior))
    spread = np.diag(covariance)
    # A logit that jumps by more than 2 has left the region that the second derivatives describe.
    reach = np.abs(step[:5]).max()
    step = step * min(1.0, 2.0 / max(reach, 1e-12))
    return theta + step, spread, float(np.abs(step / np.sqrt(spread)).max())
