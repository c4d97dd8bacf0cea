"""Worlds by name: those of the package, each drawn from a recipe, and those that others add."""

__all__ = ["PRESETS", "AnyWorld", "Recipe", "draw", "preset", "stronger", "world", "world_names"]

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import Any, Protocol, TypeVar

import numpy as np

from harmonrank.support.errors import UsageError, did_you_mean
from harmonrank.support.extras import plugins
from harmonrank.support.options import checked_whole
from harmonrank.worlds.draws import Additive, Floats, draw_effects, draw_shares
from harmonrank.worlds.plain_world import PlainWorld
from harmonrank.worlds.sample import Sample

World = TypeVar("World", bound=PlainWorld)

PLUGINS = "harmonrank.worlds"
"""The entry point by which other packages add worlds: a function of a name and of a redraw."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
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
        intercepts: of the preset's μ, with which labels have their prevalence; harmonrank-lab
            solves for those of any other draw.
    """

    prevalence: Mapping[str, float]
    context: Mapping[str, int]
    loadings: tuple[tuple[float, ...], ...]
    jitter: float = 0.1
    own: float = 0.7
    mu: float = 0.4
    tau: float
    tau_context: float = 0.3
    b_context: float = 0.25
    seed: int
    strength: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    intercepts: tuple[float, ...] = ()


PRESETS = {
    "elive": Recipe(
        prevalence={"buy": 0.001, "comment": 0.02, "follow": 0.01, "like": 0.03, "long_view": 0.25},
        context={"hour": 24, "app_version": 10, "age": 8, "gender": 3},
        loadings=((1.1, 0.4), (1.15, -0.4), (1.1, 0.2), (1.15, -0.3), (0.9, 0.3)),
        tau=0.8,
        seed=1,
        # The first factor gives three objectives a ceiling of 2.22, the second all five 3.75.
        strength={("buy", "follow", "long_view"): 0.89, ("comment", "like"): 0.897},
        intercepts=(
            -7.831883039258509, -4.780333749502258, -5.295538991372701, -4.236610841664337,
            -1.3341810647368204,
        ),
    ),
    # Click, like, follow and share at rates usual for short video; the data set is licensed.
    "qkvideo": Recipe(
        prevalence={"click": 0.27, "like": 0.03, "follow": 0.01, "share": 0.01, "long_view": 0.25},
        context={"age": 8, "gender": 3},
        loadings=((1.6, 0.4), (1.6, 0.2), (1.6, 0.3), (1.5, -0.5), (1.2, -0.4)),
        own=0.8,
        tau=0.8,
        seed=2,
        # Ceilings of 2.46 and 3.92.
        strength={("click", "like", "follow"): 0.914, ("share", "long_view"): 0.759},
        intercepts=(
            -1.4562712852463369, -4.626592274415015, -5.945521902555613, -5.485624361600013,
            -1.400339282277039,
        ),
    ),
    # A ceiling of 3.22.
    "conflict": Recipe(
        prevalence={"buy": 0.001, "comment": 0.02, "follow": 0.008, "like": 0.06,
                    "long_view": 0.23},
        context={"age": 8, "gender": 3, "region": 6},
        loadings=((1.15, 0.25), (-1.0, 0.5), (0.8, -0.85), (-0.35, 1.1), (-1.0, -0.5)),
        mu=0.3,
        tau=0.5,
        tau_context=0.25,
        b_context=0.18,
        seed=3,
        strength={("buy", "comment", "follow", "like", "long_view"): 1.014},
        intercepts=(
            -7.753650728014086, -4.647346773597588, -5.837595957901177, -3.5633856004635516,
            -1.6763769714213306,
        ),
    ),
}  # fmt: skip


@cache
def preset(name: str) -> PlainWorld:
    """Return a world of PRESETS."""
    recipe = PRESETS[name]
    drawn = draw(name, recipe, np.random.default_rng([0, recipe.seed]))
    factors = np.ones(len(drawn.objectives))
    for objectives, factor in recipe.strength.items():
        factors[[drawn.objectives.index(each) for each in objectives]] = factor
    drawn = stronger(drawn, factors)
    return replace(drawn, mu=Additive(np.array(recipe.intercepts), drawn.mu.effects))


def draw(name: str, recipe: Recipe, rng: np.random.Generator) -> PlainWorld:
    """Draw the numbers of a world, without its intercepts and strengths."""
    M = len(recipe.prevalence)
    categories = {feature: draw_shares(rng, size) for feature, size in recipe.context.items()}
    loadings = np.array(recipe.loadings)
    return PlainWorld(
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


def stronger(world: World, factor: Floats) -> World:
    """Multiply Λ, σ, τ and all effects of each objective; its intercept is not adjusted.

    The labels get easier or harder to foresee, while the correlations of the objectives and the
    ratio of noise to signal stay.
    """
    return replace(
        world,
        loadings=world.loadings * factor[:, None],
        own=world.own * factor,
        mu=world.mu.scaled(factor),
        log_tau=world.log_tau.shifted(np.log(factor)),
    )


class AnyWorld(Protocol):
    """What a world must be: columns, and rows of which all is known."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def objectives(self) -> tuple[str, ...]:
        """The objectives, in order."""

    @property
    def context(self) -> Mapping[str, int]:
        """The context columns, and how many values each has."""

    def sample(
        self,
        rows: int,
        *,
        seed: int,
        start: int = 0,
        horizon: int | None = None,
        with_truth: bool = True,
    ) -> Sample:
        """Draw rows."""


def world_names() -> tuple[str, ...]:
    """Return the names of all worlds."""
    return (*PRESETS, *sorted(set(plugins(PLUGINS)) - set(PRESETS)))


def world(name: str, *, redraw: int | None = None) -> Any:
    """Return a preset, or another world of the same kind, which harmonrank-lab draws.

    >>> world("elive").objectives
    ('buy', 'comment', 'follow', 'like', 'long_view')

    Args:
        name: one of `world_names`.
        redraw: seed of the other world.
    """
    redraw = None if redraw is None else checked_whole("redraw", redraw)
    added = plugins(PLUGINS)
    if name in added:
        module, _, function = added[name].partition(":")
        return getattr(import_module(module), function)(name, redraw)
    if name not in PRESETS:
        more = "" if added else " harmonrank-lab has others; pip install harmonrank-lab."
        raise UsageError(f"There is no world {name!r}. {did_you_mean(name, world_names())}{more}")
    if redraw is not None:
        raise UsageError(
            f"A redraw of the world '{name}' is part of harmonrank-lab; pip install harmonrank-lab."
        )
    return preset(name)
