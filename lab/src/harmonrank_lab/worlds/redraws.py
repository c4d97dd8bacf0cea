"""Worlds of the laboratory by name, and other draws of the same kinds."""

__all__ = ["WORLDS", "lab_world"]

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from harmonrank.metrics import auc, best_score
from harmonrank.worlds import PRESETS, Recipe, draw, preset, stronger
from harmonrank_lab.worlds.full_world import World
from harmonrank_lab.worlds.recipes import RECIPES, LabRecipe

WORLDS: tuple[str, ...] = tuple(RECIPES)
"""The worlds that are drawn; `trained` is made of networks."""

_SEED, _STEPS, _ROWS = 0, 3, 16_384


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
