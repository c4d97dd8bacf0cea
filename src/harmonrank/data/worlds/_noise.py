"""Solving for the upstream noise that gives a world a wanted ceiling."""

__all__ = ["scaled_noise", "with_ceiling"]

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from harmonrank.data.worlds._parts import Floats
from harmonrank.data.worlds._truth import best_score

if TYPE_CHECKING:
    from harmonrank.data.worlds._world import World

# Two blocks: the ceiling is then known to about ±.005, the more with exact probabilities.
ROWS = 32_768
STEPS = 5


def scaled_noise(world: "World", objectives: Sequence[str], factor: float) -> "World":
    """Return the world whose τ is multiplied by a factor for these objectives."""
    shift = [np.log(factor) if name in objectives else 0.0 for name in world.objectives]
    return replace(world, log_tau=world.log_tau.shifted(np.array(shift)))


def with_ceiling(
    world: "World", objectives: Sequence[str], seen: Sequence[str], target: float, rows: int = ROWS
) -> "World":
    """Return the world whose noise of `objectives` gives the objectives `seen` this ceiling.

    The ceiling falls as the noise grows, so a bracket with interpolation finds it. A target out
    of reach gives the nearest of the two ends, noise of 1/5 or of 5 times what it was.
    """
    ends = [-np.log(5), np.log(5)]
    gaps = [_ceiling(scaled_noise(world, objectives, np.exp(e)), seen, rows) - target for e in ends]
    if gaps[0] <= 0 or gaps[1] >= 0:
        return scaled_noise(world, objectives, np.exp(ends[0] if gaps[0] <= 0 else ends[1]))
    for _ in range(STEPS):
        middle = float(np.interp(0.0, gaps[::-1], ends[::-1]))
        gap = _ceiling(scaled_noise(world, objectives, np.exp(middle)), seen, rows) - target
        end = 0 if gap > 0 else 1
        # An end that stays for long would hold interpolation back: halve its gap (Illinois).
        ends[end], gaps[end], gaps[1 - end] = middle, gap, gaps[1 - end] / 2
    nearest = ends[int(abs(gaps[0]) > abs(gaps[1]))]
    return scaled_noise(world, objectives, np.exp(nearest))


def _ceiling(world: "World", seen: Sequence[str], rows: int) -> float:
    truth = world.subset(seen).sample(rows, seed=0).truth
    assert truth is not None
    return float(_auc(best_score(truth), truth).sum())


def _auc(score: Floats, p: Floats) -> Floats:
    """Return the exact AUC of every objective; the scores have no ties."""
    p = p[np.argsort(score)]
    below = np.cumsum(1 - p, axis=0) - (1 - p) / 2
    auc: Floats = (p * below).sum(0) / (p.sum(0) * (1 - p).sum(0))
    return auc
