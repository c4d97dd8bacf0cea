"""Solving for the strength of the latent logits that gives a world a wanted ceiling."""

__all__ = ["strength", "strengthened"]

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from harmonrank.data.worlds._parts import Additive, Floats
from harmonrank.data.worlds._truth import best_score

if TYPE_CHECKING:
    from harmonrank.data.worlds._world import World

# One block of rows whose ceiling is typical: with exact probabilities a redraw then comes within
# about .01 of its target.
ROWS, SEED = 16_384, 0
STEPS = 3


def strengthened(
    world: "World", objectives: Sequence[str], factor: float, prevalence: Mapping[str, float]
) -> "World":
    """Multiply Λ, σ, the effects on μ, and τ of these objectives; solve for the intercepts anew.

    The labels get easier or harder to foresee, while the correlations of the objectives and the
    ratio of noise to signal stay.
    """
    k = np.array([factor if name in objectives else 1.0 for name in world.objectives])
    return replace(
        world,
        loadings=world.loadings * k[:, None],
        own=world.own * k,
        mu=Additive(world.mu.base, {name: e * k for name, e in world.mu.effects.items()}),
        log_tau=world.log_tau.shifted(np.log(k)),
    ).with_prevalence([prevalence[name] for name in world.objectives])


def strength(
    world: "World",
    objectives: Sequence[str],
    prevalence: Mapping[str, float],
    target: float,
    rows: int = ROWS,
    seed: int = SEED,
) -> float:
    """Return the factor on these objectives that gives all objectives of `world` this ceiling.

    The ceiling rises with the strength, so a bracket with interpolation finds it. A target out
    of reach gives the nearer of the two ends, 1/2 or 2.
    """

    def gap(log_factor: float) -> float:
        changed = strengthened(world, objectives, np.exp(log_factor), prevalence)
        return _ceiling(changed, rows, seed) - target

    ends = [-np.log(2), np.log(2)]
    gaps = [gap(end) for end in ends]
    if gaps[0] >= 0 or gaps[1] <= 0:
        return float(np.exp(ends[0] if gaps[0] >= 0 else ends[1]))
    for _ in range(STEPS):
        middle = float(np.interp(0.0, gaps, ends))
        found = gap(middle)
        end = int(found > 0)
        # An end that stays for long would hold interpolation back: halve its gap (Illinois).
        ends[end], gaps[end], gaps[1 - end] = middle, found, gaps[1 - end] / 2
    return float(np.exp(np.interp(0.0, gaps, ends)))


def _ceiling(world: "World", rows: int, seed: int) -> float:
    truth = world.sample(rows, seed=seed).truth
    assert truth is not None
    return float(_auc(best_score(truth), truth).sum())


def _auc(score: Floats, p: Floats) -> Floats:
    """Return the exact AUC of every objective; the scores have no ties."""
    p = p[np.argsort(score)]
    below = np.cumsum(1 - p, axis=0) - (1 - p) / 2
    auc: Floats = (p * below).sum(0) / (p.sum(0) * (1 - p).sum(0))
    return auc
