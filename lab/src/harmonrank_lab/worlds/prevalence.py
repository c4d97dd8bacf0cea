"""Solving for the intercepts that give every objective a wanted share of positives."""

__all__ = ["intercepts"]

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from harmonrank.support import UsageError
from harmonrank.worlds import normal_nodes
from harmonrank_lab.worlds.parts import Floats

if TYPE_CHECKING:
    from harmonrank_lab.worlds.full_world import World

# Contexts of nearly the same effect are merged: this moves a share by 1e-5 of itself.
ATOMS = 512
BLOCKS, SEED = 16, 0


def intercepts(world: "World", prevalence: Sequence[float]) -> Floats:
    """Return β with E σ(β_m + z_m) = prevalence_m, z the latent logits of a world but for β.

    Over contexts and hidden classes the sum is exact. Interactions have no such sum: they are
    averaged over 262,144 rows, the same for all worlds.

    Args:
        world: Its own intercepts do not matter.
        prevalence: one share per objective, inside (0, 1).
    """
    M = len(world.objectives)
    if len(prevalence) != M or not all(0 < share < 1 for share in prevalence):
        raise UsageError(
            f"`prevalence` must be {M} shares inside (0, 1), one per objective. "
            f"Got {list(prevalence)}."
        )
    atoms = _summed(world) if world.interactions is None else _sampled(world)
    return np.array([_solve(p, *a) for p, a in zip(prevalence, atoms, strict=True)])


# Values of a part of z, how likely each is, and the spread of the rest, which is normal.
Atoms = tuple[Floats, Floats, float]


def _summed(world: "World") -> Iterator[Atoms]:
    """Yield each objective's atoms: contexts and hidden classes."""
    effects = [(e, world.categories[name]) for name, e in world.mu.effects.items()]
    effects.append((world.classes.chance, world.classes.shares))
    spread = np.sqrt(np.diag(world.covariance + world.request_effects.covariance))
    for m in range(len(world.objectives)):
        yield *_added([(effect[:, m], share) for effect, share in effects]), spread[m]


def _sampled(world: "World") -> Iterator[Atoms]:
    """Yield each objective's atoms: latent logits as drawn."""
    blocks = [world.latent_block(SEED, block) - world.mu.base for block in range(BLOCKS)]
    z = np.concatenate(blocks)
    share = np.full(len(z), 1 / len(z))
    for column in z.T:
        yield *_merged(column, share), 0.0


def _added(effects: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Return values and shares of a sum of independent effects, each values with their shares."""
    value, share = np.zeros(1), np.ones(1)
    for effect, shares in effects:
        value = np.add.outer(value, effect).ravel()
        share = np.multiply.outer(share, shares).ravel()
        if value.size > ATOMS:
            value, share = _merged(value, share)
    return value, share


def _merged(value: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Return one value per bin, its mean: the total mean is kept, the error is of second order."""
    edges = np.linspace(value.min(), value.max(), ATOMS)
    bins = np.searchsorted(edges, value)
    mass = np.bincount(bins, share).astype(np.float64)
    filled = mass > 0
    return np.bincount(bins, share * value)[filled] / mass[filled], mass[filled]


def _solve(prevalence: float, value: Floats, share: Floats, spread: float) -> float:
    x, w = normal_nodes()
    grid, mass = np.add.outer(value, spread * x), np.multiply.outer(share, w)
    wanted = np.log(prevalence / (1 - prevalence))
    beta = wanted
    for _ in range(30):
        # Newton on the logit of the share: nearly a straight line, so a few steps do.
        p = 1 / (1 + np.exp(-(beta + grid)))
        mean, slope = np.sum(mass * p), np.sum(mass * p * (1 - p))
        step = (wanted - np.log(mean / (1 - mean))) * mean * (1 - mean) / slope
        beta += step
        if abs(step) < 1e-12:
            break
    return float(beta)
