"""The spread of the density: how the variance of each logit depends on the context.

A logit is signal plus noise. Signal varies alike in all contexts, while what makes noise larger,
an old device or a new user, multiplies. So the variance has a steady part ψ and a part on which the
effects of context features multiply. With δ the sum of the effects, in units of log variance,

    v = v̄ (ψ + (1 − ψ) exp(δ / (1 − ψ))).

At ψ = 0 effects multiply the whole variance. Small effects add δ to the log variance whatever ψ is,
so that ψ is told by large ones alone, and where there are none it does not matter. ψ and effects
are those under which the logits are likeliest, found by scoring steps. Effects have a normal prior,
so that a context value with few rows is taken for an average one.
"""

__all__ = ["with_spread"]

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.model.density.density import MOST_EFFECT, MOST_STEADY, Density
from harmonrank.support.kernel import kernel
from harmonrank.support.newton import Likelihood, Step, maximise

if TYPE_CHECKING:
    from harmonrank.model.density.density_sums import DensitySums

_RIDGE = 50.0
_STEPS = 50
_CONSTANT = -27.0  # Below this log variance a score never varies: there is no likeliest spread.
# Nats per row that another step would gain: variances are then right to half a percent. Of few rows
# so many nats in all.
_ENOUGH, _LEAST_ENOUGH = 1e-5, 0.01


def with_spread(
    parts: "Blocks[DensitySums]",
    density: Density,
    rows: float,
    shift: np.ndarray,
    steady: np.ndarray | None,
) -> Density:
    """Return a density of which means and covariance are known with its variances by context.

    Args:
        parts: Moments, block by block.
        density: With a spread of 0.
        rows: The weight of all.
        shift: (M,) from the origin of the moments to the mean of all rows.
        steady: (M,) the steady part, if it is known.
    """
    if not len(density.mean):
        return density
    free, constant = steady is None, density.log_variance < _CONSTANT

    def at(theta: np.ndarray) -> Density:
        spread = np.ascontiguousarray(theta[:, :-1].T)
        return replace(density, steady=theta[:, -1].copy(), spread=spread)

    def look(theta: np.ndarray) -> Likelihood:
        return Likelihood(*parts.total(_looked, at(theta), shift))

    last = np.full(len(constant), -np.inf)

    def propose(theta: np.ndarray, there: Likelihood) -> Step | None:
        nonlocal last
        step, gain = _step(theta, there, free)
        # Where an effect meets its bound the likelihood has a kink, from which no step leads up.
        ended = constant | (there.value - _penalty(theta) <= last)
        step[ended], gain[ended] = 0.0, 0.0
        last = there.value - _penalty(theta)
        if gain.max() < max(_ENOUGH * rows, _LEAST_ENOUGH):
            return None
        target = theta + step
        target[:, -1] = np.clip(target[:, -1], 0.0, MOST_STEADY)  # of its rounding
        return Step(target, _penalty, False)

    start = np.column_stack([density.spread.T, density.steady if steady is None else steady])
    return at(maximise(look, start, propose, _STEPS).checked("The spread of the density").theta)


def _penalty(theta: np.ndarray) -> np.ndarray:
    """Return what the prior takes off twice the log-likelihood of each objective."""
    lost: np.ndarray = 0.5 * _RIDGE * (theta[:, :-1] ** 2).sum(axis=1)
    return lost


def _step(theta: np.ndarray, there: Likelihood, free: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the scoring step of each objective, (M, slots + 1), and the nats that it promises."""
    slope, curvature, steady = there.slope.copy(), there.curvature.copy(), theta[:, -1]
    slope[:, :-1] -= _RIDGE * theta[:, :-1]
    effects = np.arange(theta.shape[1] - 1)
    curvature[:, effects, effects] += _RIDGE
    # Where effects are 0 nothing tells the steady part, which then stays.
    curvature += 1e-6 * np.eye(theta.shape[1])
    step = _solved(curvature, slope)
    aim = np.clip(steady + step[:, -1], 0.0, MOST_STEADY) if free else steady
    # Where the steady part would leave its bounds it ends there, and effects go to what is then
    # their top.
    held = aim != steady + step[:, -1]
    if held.any():
        step[held, -1] = (aim - steady)[held]
        pull = slope[held, :-1] - curvature[held, :-1, -1] * step[held, -1:]
        step[held, :-1] = _solved(curvature[held, :-1, :-1], pull)
    bent = np.einsum("mi,mij,mj->m", step, curvature, step)
    return step, 0.5 * ((slope * step).sum(axis=1) - 0.5 * bent)


def _solved(curvature: np.ndarray, slope: np.ndarray) -> np.ndarray:
    step: np.ndarray = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
    return step


def _looked(sums: "DensitySums", density: Density, shift: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return twice the log-likelihood of each logit in a block, its slope and its curvature.

    These are (M,), (M, slots + 1) and (M, slots + 1, slots + 1), the steady part last.
    """
    M, size = len(density.base), len(density.mean) + 1
    value, slope, curvature = np.zeros(M), np.zeros((M, size)), np.zeros((M, size, size))
    unit = np.exp(-density.log_variance)
    rows = sums.contexts, sums.mass, sums.total, sums.squares
    given = density.first, shift, density.mean, unit, density.steady, density.spread
    _add(rows, given, value, slope, curvature)
    # No sum is below 0, and the upper halves are still 0.
    return value, slope, np.maximum(curvature, np.swapaxes(curvature, 1, 2))


@kernel
def _add(rows: Any, density: Any, value: Any, slope: Any, curvature: Any) -> None:
    """Add up values, slopes and the lower halves of curvatures, context by context."""
    (contexts, mass, total, squares), (first, shift, mean, unit, steady, spread) = rows, density
    last = slope.shape[1] - 1
    columns = np.empty(len(first), np.int64)
    for c in range(len(contexts)):
        for a in range(len(first)):
            columns[a] = first[a] + contexts[c, a]
        for m in range(len(slope)):
            centre, effect = shift[m], 0.0
            for a in range(len(first)):
                centre += mean[columns[a], m]
                effect += spread[columns[a], m]
            rest = 1 - steady[m]
            effect = min(max(effect / rest, -MOST_EFFECT), MOST_EFFECT)
            varied = np.exp(effect)
            variance = steady[m] + rest * varied  # relative to that of all contexts
            away = squares[c, m] - 2 * centre * total[c, m] + mass[c] * centre**2
            ratio = away * unit[m] / variance
            value[m] -= mass[c] * np.log(variance) + ratio
            over = ratio - mass[c]
            # What a unit of an effect, and of the steady part, adds to the log variance.
            by_effect = varied / variance
            by_steady = (1 - varied + varied * effect) / variance
            slope[m, last] += over * by_steady
            curvature[m, last, last] += mass[c] * by_steady * by_steady
            weight = mass[c] * by_effect
            for a in range(len(first)):
                slope[m, columns[a]] += over * by_effect
                curvature[m, last, columns[a]] += weight * by_steady
                row = curvature[m, columns[a]]
                for b in range(a + 1):
                    row[columns[b]] += weight * by_effect
