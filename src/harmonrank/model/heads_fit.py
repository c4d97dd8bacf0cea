"""Fitting the heads: Newton steps for the coefficients, the evidence for how far to shrink them.

Every group of coefficients has a normal prior whose precision λ all objectives share. MacKay's
update λ = γ/Σ(θ − mean)² maximises the evidence, γ being the number of coefficients that the data
decide: eq. 5 of docs/default-method.md. The first four groups also share their mean: a rare
objective borrows from common ones, and a group that explains nothing is shrunk to nothing. So
nothing is tuned and no row is set aside.
"""

__all__ = ["fit_heads", "fit_linear"]

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from harmonrank.model.completions import Completions
from harmonrank.model.coordinate import Coordinate, fit_coordinate
from harmonrank.model.head_columns import GROUPS, INTERCEPT, OTHERS, OWN, SHARED, HeadColumns
from harmonrank.model.head_quadratic import Derivatives
from harmonrank.model.heads import Heads
from harmonrank.model.heads_sums import HeadSums
from harmonrank.model.law import Law
from harmonrank.model.law_fit import fit_incomplete_law
from harmonrank.model.residual import Residual
from harmonrank.model.residual_fit import fit_residual
from harmonrank.model.residual_sums import ResidualRows

_STEPS = 25
_START_PRECISION = (4.0, 4.0, 4.0, 4.0, 100.0, 30.0)
_LEAST, _MOST = 1e-2, 1e6
# Posterior standard deviations; smaller steps no longer move the ranking.
_ENOUGH = 0.15
# Within this many of them the likelihood is as good as quadratic.
_NEAR = 2.0
_ROUNDS = 50
# What a plain calibration of each score would be; the first four groups.
_PLAIN = np.array([1.0, 0.0, 0.0, 0.0])


def fit_heads(
    logits: np.ndarray,
    codes: np.ndarray,
    slots: tuple[int, ...],
    labels: np.ndarray,
    weight: np.ndarray | None = None,
    on_step: Callable[[int, int], None] = lambda *_: None,
    *,
    residual: bool = True,
    overwrite: bool = False,
) -> Heads:
    """Fit coordinates, their law, the heads of all objectives and what these leave unexplained.

    Args:
        logits: (rows, M) of the scores; NaN where one is missing.
        codes: (rows, features) of the context.
        slots: Codes per feature.
        labels: (rows, M) of 0 and 1.
        weight: (rows,) sample weights.
        on_step: Called with the number of the step and the most there can be.
        residual: Without it, heads are linear in the coordinates given the context.
        overwrite: The logits are not needed any more; saves their memory.
    """
    steps = _STEPS + logits.shape[1] * residual
    coordinate = fit_coordinate(logits, labels, weight)
    places = coordinate(logits, out=logits if overwrite else None)
    law = fit_incomplete_law(places, codes, slots, weight)
    plain = _plain(coordinate, law, slots, labels, weight)

    def told(step: int) -> None:
        on_step(step, steps)

    if np.isnan(places).any():
        heads = _fit_incomplete(plain, places, codes, labels, weight, told, residual)
    else:
        data = HeadSums.of(law, places, codes, slots, labels, weight)
        del places
        heads = _fit(plain, data, told, residual)
    on_step(steps, steps)
    return heads


def _plain(
    coordinate: Coordinate,
    law: Law,
    slots: tuple[int, ...],
    labels: np.ndarray,
    weight: np.ndarray | None,
) -> Heads:
    """Return the heads that a fit begins with."""
    M = len(law.base)
    prevalence = np.clip(np.average(labels, axis=0, weights=weight), 1e-9, 1 - 1e-9)
    theta = np.zeros((M, HeadColumns(M).total(slots)))
    theta[:, INTERCEPT], theta[:, OWN] = np.log(prevalence / (1 - prevalence)), 1.0
    none = Residual.none(M, slots)
    return Heads(coordinate, law, slots, theta, np.array(_START_PRECISION), _PLAIN, none)


def _fit(heads: Heads, data: HeadSums, on_step: Callable[[int], None], residual: bool) -> Heads:
    """Fit linear heads to whole rows, and what they leave unexplained."""
    heads = fit_linear(heads, data, on_step)
    if not residual:
        return heads
    rows = ResidualRows.of(data, heads.slots, heads.theta)
    found = fit_residual(rows, lambda m: on_step(_STEPS + m + 1))
    return replace(heads, residual=found)


def _fit_incomplete(
    heads: Heads,
    places: np.ndarray,
    codes: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray | None,
    on_step: Callable[[int], None],
    residual: bool,
) -> Heads:
    """Fit heads to rows some of whose coordinates are missing, by the method of weights."""
    law, slots = heads.law, heads.slots
    rows = Completions.of(places, law, codes, slots, weight)
    data = HeadSums.of(law, rows.means, codes, slots, labels, weight)
    heads = fit_linear(heads, data)
    for last in (False, True):
        w = rows.weights(heads, codes, labels)
        data = rows.sums(law, codes, slots, labels, w)
        heads = _fit(heads, data, on_step if last else lambda _: None, residual and last)
    return heads


def fit_linear(
    heads: Heads, data: Derivatives, on_step: Callable[[int], None] = lambda _: None
) -> Heads:
    """Take Newton steps until they no longer move the ranking."""
    group = HeadColumns(len(heads.theta)).groups(heads.slots)
    for step in range(_STEPS):
        heads, change = _step(heads, _Curve.at(heads.theta, data), group)
        on_step(step + 1)
        if change < _ENOUGH:
            break
    return heads


@dataclass(frozen=True)
class _Curve:
    """The heads' log-likelihoods near a point, to second order.

    Attributes:
        theta: (M, D), the point.
        slope: (M, D), gradients there.
        curvature: (M, D, D), negative Hessians.
    """

    theta: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray

    @classmethod
    def at(cls, theta: np.ndarray, data: Derivatives) -> "_Curve":
        """Look at all rows once."""
        return cls(theta, *data.derivatives(theta))

    def top(self, prior: np.ndarray, decay: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the largest posterior, and the posterior variances."""
        covariance = np.linalg.inv(self.curvature + np.diag(decay))
        pull = self.slope - decay * (self.theta - prior)
        step = (covariance @ pull[:, :, None])[:, :, 0]
        # A logit that jumps by more than 2 has left the region that the curve describes.
        reach = np.abs(step[:, :OTHERS]).max(axis=1, keepdims=True)
        step *= np.minimum(1.0, 2.0 / np.maximum(reach, 1e-12))
        return self.theta + step, np.diagonal(covariance, axis1=1, axis2=2)


def _step(heads: Heads, curve: _Curve, group: np.ndarray) -> tuple[Heads, float]:
    """Take a Newton step of all heads, and settle what they share; return the largest change.

    The precisions converge slowly, but need no look at the rows: near the top the curve does for
    them. Changes are measured in posterior standard deviations.
    """
    for again in range(_ROUNDS):
        before = heads
        heads, spread = _update(heads, curve, group)
        deviation = np.sqrt(spread)
        change = float((np.abs(heads.theta - curve.theta) / deviation).max())
        moved = float((np.abs(heads.theta - before.theta) / deviation).max())
        open_ = before.precision < _MOST / 10
        drift = np.abs(np.log(heads.precision / before.precision))[open_].max(initial=0)
        if (again == 0 and change > _NEAR) or max(moved, drift) < _ENOUGH / 10:
            break
    return heads, change


def _update(heads: Heads, curve: _Curve, group: np.ndarray) -> tuple[Heads, np.ndarray]:
    """Find the top of the curve under the present prior, then the prior that fits it best."""
    prior = np.zeros(heads.theta.shape[1])
    prior[SHARED] = heads.shared
    theta, spread = curve.top(prior, np.where(group >= 0, heads.precision[group], 1e-6))
    shared = _shared_means(theta)
    prior[SHARED] = shared
    precision = heads.precision.copy()
    for g in range(len(GROUPS)):
        of_group = group == g
        if not of_group.any():
            continue
        energy = ((theta - prior)[:, of_group] ** 2).sum()
        # γ and λ of eq. 5 of docs/default-method.md.
        known = (1 - heads.precision[g] * spread[:, of_group]).sum()
        precision[g] = np.clip(known / max(energy, 1e-12), _LEAST, _MOST)
    return replace(heads, theta=theta, precision=precision, shared=shared), spread


def _shared_means(theta: np.ndarray) -> np.ndarray:
    """Return the mean over objectives of the first four groups, shrunk to (1, 0, 0, 0).

    The shrinkage is that of one more objective which is what a plain calibration would be.
    """
    total = theta[:, SHARED].sum(axis=0)
    means: np.ndarray = (total + _PLAIN) / (len(theta) + 1)
    return means
