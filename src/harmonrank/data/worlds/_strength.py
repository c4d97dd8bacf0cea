"""Solving for the strength of the latent logits that gives a world a wanted ceiling."""

__all__ = ["ceiling", "strength", "strengthened"]

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from harmonrank.data.worlds._parts import Floats
from harmonrank.data.worlds._truth import best_score

if TYPE_CHECKING:
    from harmonrank.data.worlds._world import World

SEED, STEPS = 0, 3


def strengthened(
    world: "World", objectives: Sequence[str], factor: float, prevalence: Mapping[str, float]
) -> "World":
    """Multiply Λ, σ, τ and all effects of these objectives; solve for the intercepts again.

    The labels get easier or harder to foresee, while the correlations of the objectives and the
    ratio of noise to signal stay.
    """
    k = np.array([factor if name in objectives else 1.0 for name in world.objectives])
    return replace(
        world,
        loadings=world.loadings * k[:, None],
        own=world.own * k,
        mu=world.mu.scaled(k),
        log_tau=world.log_tau.shifted(np.log(k)),
        hidden=None if world.hidden is None else world.hidden.scaled(k),
        interactions=None if world.interactions is None else world.interactions.scaled(k),
    ).with_prevalence([prevalence[name] for name in world.objectives])


def strength(
    world: "World",
    objectives: Sequence[str],
    prevalence: Mapping[str, float],
    target: float,
    rows: int,
) -> float:
    """Return the factor on these objectives that gives all objectives of `world` this ceiling.

    The ceiling is nearly a straight line in the logarithm of the factor, so a few secant steps
    find it. A target out of reach gives a factor of 1/2 or 2.
    """

    def gap(log_factor: float) -> float:
        changed = strengthened(world, objectives, np.exp(log_factor), prevalence)
        return ceiling(changed, rows) - target

    previous, before = 0.0, gap(0.0)
    x = -0.1 if before > 0 else 0.1
    for _ in range(STEPS):
        found = gap(x)
        if found == before:
            break
        step = found * (x - previous) / (found - before)
        previous, before, x = x, found, float(np.clip(x - step, -np.log(2), np.log(2)))
    return float(np.exp(x))


def ceiling(world: "World", rows: int) -> float:
    """Return the best possible AUC-sum on some rows of the world."""
    truth = world.sample(rows, seed=SEED).truth
    assert truth is not None
    return float(_auc(best_score(truth), truth).sum())


def _auc(score: Floats, p: Floats) -> Floats:
    """Return the exact AUC of every objective; the scores have no ties."""
    p = p[np.argsort(score)]
    below = np.cumsum(1 - p, axis=0) - (1 - p) / 2
    auc: Floats = (p * below).sum(0) / (p.sum(0) * (1 - p).sum(0))
    return auc
