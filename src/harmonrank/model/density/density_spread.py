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

if TYPE_CHECKING:
    from harmonrank.model.density.density_sums import DensitySums

_RIDGE = 50.0
_STEPS = 12
# Nats that another step would gain.
_ENOUGH = 0.01
_SHORTER = 0.25  # Of a step that made logits less likely.


def with_spread(
    parts: "Blocks[DensitySums]", density: Density, shift: np.ndarray, steady: np.ndarray | None
) -> Density:
    """Return a density of which means and covariance are known with its variances by context.

    Args:
        parts: Moments, block by block.
        density: With a spread of 0.
        shift: (M,) from the origin of the moments to the mean of all rows.
        steady: (M,) the steady part, if it is known.
    """
    if not len(density.mean):
        return density
    free = steady is None
    density = density if steady is None else replace(density, steady=steady)
    here = _penalised(density, *parts.total(_looked, density, shift))
    length = np.ones(len(density.base))
    for _ in range(_STEPS):
        step, gain = _step(density.steady, here[1], here[2], free)
        if gain.max() < _ENOUGH:
            break
        trial = _moved(density, length[:, None] * step)
        there = _penalised(trial, *parts.total(_looked, trial, shift))
        # Each objective goes its own way: one whose step was too long takes a shorter one.
        better = there[0] >= here[0]
        density = replace(
            density,
            steady=np.where(better, trial.steady, density.steady),
            spread=np.where(better, trial.spread, density.spread),
        )
        here = tuple(
            np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
            for new, old in zip(there, here, strict=True)
        )
        length = np.where(better, 1.0, _SHORTER * length)
    return density


def _penalised(
    density: Density, value: np.ndarray, slope: np.ndarray, curvature: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return twice the log posterior of each objective, and its derivatives."""
    effects = density.spread.T  # (M, slots)
    slope, curvature = slope.copy(), curvature.copy()
    slope[:, :-1] -= _RIDGE * effects
    diagonal = np.arange(effects.shape[1])
    curvature[:, diagonal, diagonal] += _RIDGE
    return value - 0.5 * _RIDGE * (effects**2).sum(axis=1), slope, curvature


def _step(
    steady: np.ndarray, slope: np.ndarray, curvature: np.ndarray, free: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scoring step of each objective, (M, slots + 1), and the nats that it promises."""
    step = _solved(slope, curvature) if free else np.zeros_like(slope)
    ahead = step[:, -1]
    # A steady part that would leave its bounds stays, and effects take the step that is theirs.
    held = (steady <= 0) & (ahead <= 0) | (steady >= MOST_STEADY) & (ahead >= 0) | (not free)
    if held.any():
        step[held, :-1] = _solved(slope[held, :-1], curvature[held, :-1, :-1])
        step[held, -1] = 0.0
    return step, 0.25 * (slope * step).sum(axis=1)


def _solved(slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    # Where effects are 0 nothing tells the steady part, which then stays.
    level = curvature + 1e-6 * np.eye(slope.shape[1])
    step: np.ndarray = np.linalg.solve(level, slope[:, :, None])[:, :, 0]
    return step


def _moved(density: Density, step: np.ndarray) -> Density:
    steady = np.clip(density.steady + step[:, -1], 0.0, MOST_STEADY)
    return replace(density, steady=steady, spread=density.spread + step[:, :-1].T)


def _looked(sums: "DensitySums", density: Density, shift: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return twice the log-likelihood of each logit in a block, its slope and its curvature.

    These are (M,), (M, slots + 1) and (M, slots + 1, slots + 1), the steady part last.
    """
    M, size = len(density.base), len(density.mean) + 1
    value, slope, curvature = np.zeros(M), np.zeros((M, size)), np.zeros((M, size, size))
    unit = np.exp(-density.log_variance)
    _add(
        density.first, sums.contexts, sums.mass, sums.total, sums.squares, shift,
        density.mean, unit, density.steady, density.spread, value, slope, curvature,
    )  # fmt: skip
    # No sum is below 0, and the upper halves are still 0.
    return value, slope, np.maximum(curvature, np.swapaxes(curvature, 1, 2))


@kernel
def _add(
    first: Any, contexts: Any, mass: Any, total: Any, squares: Any, shift: Any, mean: Any,
    unit: Any, steady: Any, spread: Any, value: Any, slope: Any, curvature: Any,
) -> None:  # fmt: skip
    """Add up values, slopes and the lower halves of curvatures, context by context."""
    last = slope.shape[1] - 1
    places = np.empty(len(first), np.int64)
    for c in range(len(contexts)):
        for a in range(len(first)):
            places[a] = first[a] + contexts[c, a]
        for m in range(len(slope)):
            centre, effect = shift[m], 0.0
            for a in range(len(first)):
                centre += mean[places[a], m]
                effect += spread[places[a], m]
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
                slope[m, places[a]] += over * by_effect
                curvature[m, last, places[a]] += weight * by_steady
                row = curvature[m, places[a]]
                for b in range(a + 1):
                    row[places[b]] += weight * by_effect
