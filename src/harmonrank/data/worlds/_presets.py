"""The worlds that come with the package, each a recipe that can be drawn again."""

__all__ = ["WORLDS", "world"]

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from harmonrank.data.worlds._parts import Additive, Floats
from harmonrank.data.worlds._strength import ceiling, strength, strengthened
from harmonrank.data.worlds._world import World
from harmonrank.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class _Recipe:
    """What all draws of one kind of world share.

    Attributes:
        prevalence: the share of positives of every objective.
        context: the number of categories of every feature.
        loadings: means of Λ, one row per objective.
        jitter: spread of a draw's loadings around these means.
        own: mean of σ.
        mu: spread of μ(c) over contexts.
        tau: middle of the upstream noise.
        tau_context: spread of log τ(c) over contexts.
        b_context: spread of b(c) over contexts.
        seed: of the preset itself.
        strength: factors on the latent logits of some objectives, solved on 1M rows of the preset.
    """

    prevalence: Mapping[str, float]
    context: Mapping[str, int]
    loadings: tuple[tuple[float, ...], ...]
    jitter: float
    own: float
    mu: float
    tau: float
    tau_context: float
    b_context: float
    seed: int
    strength: Mapping[tuple[str, ...], float]


_RECIPES = {
    "elive": _Recipe(
        prevalence={"buy": 0.001, "comment": 0.02, "follow": 0.01, "like": 0.03, "long_view": 0.25},
        context={"hour": 24, "app_version": 10, "age": 8, "gender": 3},
        loadings=((1.1, 0.4), (1.15, -0.4), (1.1, 0.2), (1.15, -0.3), (0.9, 0.3)),
        jitter=0.1,
        own=0.7,
        mu=0.4,
        tau=0.8,
        tau_context=0.3,
        b_context=0.25,
        seed=1,
        # The first factor gives three objectives a ceiling of 2.22, the second all five 3.75.
        strength={("buy", "follow", "long_view"): 0.89, ("comment", "like"): 0.897},
    ),
    # Click, like, follow and share at rates usual for short video; the data set is licensed.
    "qkvideo": _Recipe(
        prevalence={"click": 0.27, "like": 0.03, "follow": 0.01, "share": 0.01, "long_view": 0.25},
        context={"age": 8, "gender": 3},
        loadings=((1.6, 0.4), (1.6, 0.2), (1.6, 0.3), (1.5, -0.5), (1.2, -0.4)),
        jitter=0.1,
        own=0.8,
        mu=0.4,
        tau=0.8,
        tau_context=0.3,
        b_context=0.25,
        seed=2,
        # Ceilings of 2.46 and 3.92.
        strength={("click", "like", "follow"): 0.914, ("share", "long_view"): 0.759},
    ),
    "conflict": _Recipe(
        prevalence={
            "buy": 0.001,
            "comment": 0.02,
            "follow": 0.008,
            "like": 0.06,
            "long_view": 0.23,
        },
        context={"age": 8, "gender": 3, "region": 6},
        loadings=((1.15, 0.25), (-1.0, 0.5), (0.8, -0.85), (-0.35, 1.1), (-1.0, -0.5)),
        jitter=0.1,
        own=0.7,
        mu=0.3,
        tau=0.5,
        tau_context=0.25,
        b_context=0.18,
        seed=3,
        # A ceiling of 3.22.
        strength={("buy", "comment", "follow", "like", "long_view"): 1.014},
    ),
}

WORLDS: tuple[str, ...] = tuple(_RECIPES)


@cache
def world(name: str, *, redraw: int | None = None) -> World:
    """Return a preset, or another world of the same kind.

    A redraw has other loadings, context effects, noise and upstream scales, but the same
    objectives, prevalences, context features and nearly the same ceiling.

    >>> world("elive").objectives
    ('buy', 'comment', 'follow', 'like', 'long_view')

    Args:
        name: one of `WORLDS`.
        redraw: seed of the other world.
    """
    if name not in _RECIPES:
        raise UsageError(f"There is no world {name!r}. {did_you_mean(name, WORLDS)}")
    if redraw is not None and redraw < 0:
        raise UsageError(f"`redraw` must be 0 or more. Got {redraw}.")
    recipe = _RECIPES[name]
    if redraw is not None:
        return _like(world(name), _draw(f"{name}-{redraw}", recipe, [1, redraw]), recipe)
    drawn = _draw(name, recipe, [0, recipe.seed])
    for objectives, factor in recipe.strength.items():
        drawn = strengthened(drawn, objectives, factor, recipe.prevalence)
    return drawn


def _like(preset: World, drawn: World, recipe: _Recipe) -> World:
    """Give the drawn world the ceilings of the preset, for some objectives, then with the next."""
    seen: tuple[str, ...] = ()
    for objectives in recipe.strength:
        seen += objectives
        target = ceiling(preset.subset(seen))
        factor = strength(drawn.subset(seen), objectives, recipe.prevalence, target)
        drawn = strengthened(drawn, objectives, factor, recipe.prevalence)
    return drawn


def _draw(name: str, recipe: _Recipe, seed: list[int]) -> World:
    rng = np.random.default_rng(seed)
    M = len(recipe.prevalence)
    categories = {feature: _shares(rng, size) for feature, size in recipe.context.items()}
    loadings = np.array(recipe.loadings)
    drawn = World(
        name=name,
        objectives=tuple(recipe.prevalence),
        categories=categories,
        loadings=loadings + recipe.jitter * rng.standard_normal(loadings.shape),
        own=recipe.own * np.exp(0.1 * rng.standard_normal(M)),
        mu=Additive(np.zeros(M), _effects(rng, categories, M, recipe.mu)),
        log_tau=Additive(
            np.log(recipe.tau) + 0.15 * rng.standard_normal(M),
            _effects(rng, categories, M, recipe.tau_context),
        ),
        a=np.exp(rng.uniform(-0.4, 0.4, M)),
        b=Additive(rng.normal(0, 0.5, M), _effects(rng, categories, M, recipe.b_context)),
    )
    return drawn.with_prevalence(list(recipe.prevalence.values()))


def _shares(rng: np.random.Generator, size: int) -> Floats:
    share = np.exp(_smooth(0.8 * rng.standard_normal((size, 1)))[:, 0])
    shares: Floats = share / share.sum()
    return shares


def _effects(
    rng: np.random.Generator, categories: Mapping[str, Floats], M: int, spread: float
) -> dict[str, Floats]:
    """Draw effects, smooth along each feature, whose sum has this spread over contexts."""
    effects = {}
    for feature, share in categories.items():
        effect = _smooth(rng.standard_normal((share.size, M)))
        effect -= share @ effect
        effects[feature] = effect * (spread / np.sqrt(len(categories) * (share @ effect**2)))
    return effects


def _smooth(values: Floats) -> Floats:
    """Average each category with its neighbours: hours and ages are ordered."""
    for _ in range(len(values) // 4):
        values = (np.roll(values, 1, axis=0) + 2 * values + np.roll(values, -1, axis=0)) / 4
    return values
