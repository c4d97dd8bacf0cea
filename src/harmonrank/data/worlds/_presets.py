"""The worlds that come with the package, each a recipe that can be drawn again."""

__all__ = ["WORLDS", "world"]

from functools import cache

import numpy as np

from harmonrank.data.worlds._parts import Additive, draw_effects, draw_shares
from harmonrank.data.worlds._recipes import RECIPES, Recipe
from harmonrank.data.worlds._strength import ceiling, strength, strengthened
from harmonrank.data.worlds._world import World
from harmonrank.errors import UsageError, did_you_mean
from harmonrank.options import checked_whole

WORLDS: tuple[str, ...] = tuple(RECIPES)
"""The worlds that are drawn; `harmonrank.evaluation.worlds` has the trained one too."""


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
        drawn = strengthened(drawn, objectives, factor, recipe.prevalence)
    return drawn


def _like(preset: World, drawn: World, recipe: Recipe) -> World:
    """Give the drawn world the ceilings of the preset, for some objectives, then with the next."""
    seen: tuple[str, ...] = ()
    rows = recipe.solved_on
    for objectives in recipe.strength:
        seen += objectives
        target = ceiling(preset.subset(seen), rows)
        factor = strength(drawn.subset(seen), objectives, recipe.prevalence, target, rows)
        drawn = strengthened(drawn, objectives, factor, recipe.prevalence)
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
