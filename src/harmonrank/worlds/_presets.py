"""The worlds that come with the package, each a recipe that can be drawn again."""

__all__ = ["WORLDS", "ceiling", "strength", "world"]

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from harmonrank.metrics import best_score
from harmonrank.support.errors import UsageError, did_you_mean
from harmonrank.support.options import checked_whole
from harmonrank.worlds._parts import Additive, Floats, draw_effects, draw_shares
from harmonrank.worlds._recipes import RECIPES, Recipe
from harmonrank.worlds._world import World

WORLDS: tuple[str, ...] = tuple(RECIPES)
"""The worlds that are drawn; `harmonrank.worlds.every` has the trained one too."""
SEED, STEPS = 0, 3


@cache
def world(name: str, *, redraw: int | None = None) -> World:
    """Return a preset, or another world of the same kind.

    A redraw has other loadings, context effects, noise and upstream scales, and breaks the same
    assumption in another way; it has the same objectives, prevalences, context features and
    nearly the same ceiling.
    """
    if name not in RECIPES:
        raise UsageError(f"There is no world {name!r}. {did_you_mean(name, WORLDS)}")
    recipe = RECIPES[name]
    if redraw is not None:
        redraw = checked_whole("redraw", redraw)
        return _like(world(name), _draw(f"{name}-{redraw}", recipe, [1, redraw]), recipe)
    drawn = _draw(name, recipe, [0, recipe.seed])
    for objectives, factor in recipe.strength.items():
        drawn = _strengthened(drawn, objectives, factor, recipe.prevalence)
    return drawn


def _like(preset: World, drawn: World, recipe: Recipe) -> World:
    """Give the drawn world the ceilings of the preset, for some objectives, then with the next."""
    seen: tuple[str, ...] = ()
    rows = recipe.solved_on
    for objectives in recipe.strength:
        seen += objectives
        target = ceiling(preset.subset(seen), rows)
        factor = strength(drawn.subset(seen), objectives, recipe.prevalence, target, rows)
        drawn = _strengthened(drawn, objectives, factor, recipe.prevalence)
    return drawn


def _draw(name: str, recipe: Recipe, seed: list[int]) -> World:
    rng = np.random.default_rng(seed)
    M = len(recipe.prevalence)
    categories = {feature: draw_shares(rng, size) for feature, size in recipe.context.items()}
    loadings = np.array(recipe.loadings)
    drawn = World(
        name=name,
        objectives=tuple(recipe.prevalence),
        categories=categories,
        loadings=loadings + recipe.jitter * rng.standard_normal(loadings.shape),
        own=recipe.own * np.exp(0.1 * rng.standard_normal(M)),
        mu=Additive(np.zeros(M), draw_effects(rng, categories, M, recipe.mu)),
        log_tau=Additive(
            np.log(recipe.tau) + 0.15 * rng.standard_normal(M),
            draw_effects(rng, categories, M, recipe.tau_context),
        ),
        a=np.exp(rng.uniform(-0.4, 0.4, M)),
        b=Additive(rng.normal(0, 0.5, M), draw_effects(rng, categories, M, recipe.b_context)),
    )
    if recipe.violation is not None:
        drawn = recipe.violation(drawn, rng)
    return drawn.with_prevalence(list(recipe.prevalence.values()))


def _strengthened(
    world: World, objectives: Sequence[str], factor: float, prevalence: Mapping[str, float]
) -> World:
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
        requests=None if world.requests is None else world.requests.scaled(k),
    ).with_prevalence([prevalence[name] for name in world.objectives])


def strength(
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
        changed = _strengthened(world, objectives, np.exp(log_factor), prevalence)
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


def ceiling(world: World, rows: int) -> float:
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
