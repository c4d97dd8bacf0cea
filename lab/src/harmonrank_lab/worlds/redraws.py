"""Worlds of the laboratory by name, other draws of the same kinds, and their intercepts."""

__all__ = ["WORLDS", "intercepts", "lab_world"]

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from harmonrank.metrics import auc, best_score
from harmonrank.support import UsageError
from harmonrank.worlds import PRESETS, Recipe, draw, normal_nodes, preset, stronger
from harmonrank_lab.worlds.full_world import World
from harmonrank_lab.worlds.parts import Floats
from harmonrank_lab.worlds.recipes import RECIPES, LabRecipe

if TYPE_CHECKING:
    from harmonrank_lab.worlds.full_world import World

# Contexts of nearly the same effect are merged: this moves a share by 1e-5 of itself.
ATOMS = 512
BLOCKS, SEED = 16, 0

WORLDS: tuple[str, ...] = tuple(RECIPES)
"""The worlds that are drawn; `trained` is made of networks."""

_SEED, _STEPS, _ROWS = 0, 3, 16_384


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
    shared = world.request_effects
    spread = np.sqrt(np.diag(world.covariance + shared.covariance) + shared.hidden_variance)
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


@cache
def lab_world(name: str, redraw: int | None = None) -> World:
    """Return a preset, or another world of the same kind.

    A redraw has other loadings, context effects, noise and upstream scales, and breaks the same
    assumption in another way; it has the same objectives, prevalences, context features and
    nearly the same ceiling.
    """
    recipe = RECIPES[name]
    if redraw is not None:
        return _like(lab_world(name), _drawn(f"{name}-{redraw}", recipe, [1, redraw]), recipe)
    if name in PRESETS:
        return World.of(preset(name))
    return _drawn(name, recipe, [0, recipe.seed])


def _drawn(name: str, recipe: Recipe, seed: list[int]) -> World:
    rng = np.random.default_rng(seed)
    drawn = World.of(draw(name, recipe, rng))
    if isinstance(recipe, LabRecipe):
        drawn = recipe.violation(drawn, rng)
    return drawn.with_prevalence(list(recipe.prevalence.values()))


def _like(preset: World, drawn: World, recipe: Recipe) -> World:
    """Give the drawn world the ceilings of the preset, for some objectives, then with the next."""
    seen: tuple[str, ...] = ()
    rows = recipe.solved_on if isinstance(recipe, LabRecipe) else _ROWS
    for objectives in recipe.strength or (drawn.objectives,):
        seen += objectives
        target = _ceiling(preset.subset(seen), rows)
        factor = _strength(drawn.subset(seen), objectives, recipe.prevalence, target, rows)
        drawn = _strengthened(drawn, objectives, factor, recipe.prevalence)
    return drawn


def _strengthened(
    world: World, objectives: Sequence[str], factor: float, prevalence: Mapping[str, float]
) -> World:
    """Multiply the latent logits of these objectives; solve for the intercepts again."""
    k = np.array([factor if name in objectives else 1.0 for name in world.objectives])
    scaled = {
        name: part.scaled(k)
        for name in ("hidden", "interactions", "requests")
        if (part := getattr(world, name)) is not None
    }
    changed = replace(stronger(world, k), **scaled)
    return changed.with_prevalence([prevalence[name] for name in world.objectives])


def _strength(
    world: World,
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
        changed = _strengthened(world, objectives, float(np.exp(log_factor)), prevalence)
        return _ceiling(changed, rows) - target

    previous, before = 0.0, gap(0.0)
    x = -0.1 if before > 0 else 0.1
    for _ in range(_STEPS):
        now = gap(x)
        if now == before:
            break
        step = now * (x - previous) / (now - before)
        previous, before, x = x, now, float(np.clip(x - step, -np.log(2), np.log(2)))
    return float(np.exp(x))


def _ceiling(world: World, rows: int) -> float:
    """Return the best possible AUC-sum on some rows of the world."""
    truth = world.sample(rows, seed=_SEED).truth
    assert truth is not None
    return float(auc(best_score(truth), truth).sum())
