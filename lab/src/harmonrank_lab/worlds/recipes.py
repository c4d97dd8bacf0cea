"""Recipes of the worlds that each break one assumption of a plain world."""

__all__ = ["RECIPES", "LabRecipe"]

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from harmonrank.worlds import PRESETS, Additive, Recipe, draw_effects
from harmonrank_lab.worlds.full_world import World
from harmonrank_lab.worlds.lifelike import with_cities, with_clusters, with_drift, with_lists
from harmonrank_lab.worlds.parts import Floats, Hidden, Interactions
from harmonrank_lab.worlds.shared_effects import RequestEffects

Violation = Callable[[World, np.random.Generator], World]

_USUAL = {"buy": 0.001, "comment": 0.02, "follow": 0.01, "like": 0.05, "long_view": 0.25}
# Two objectives that happen several times in a request, and three that seldom happen twice.
_FREQUENT = {"buy": 0.005, "comment": 0.02, "follow": 0.01, "like": 0.1, "long_view": 0.3}


def with_backbone(world: World, rng: np.random.Generator) -> World:
    """Correlate the upstream noise of any two objectives by .5 to .8."""
    return replace(world, backbone=np.sqrt(rng.uniform(0.5, 0.8, len(world.objectives))))


def with_tails(world: World, rng: np.random.Generator) -> World:
    """Hide three intents, two usual noise levels, and a tenth of rows with far more noise.

    An intent moves the mean logits by about 1; the noise is some .6, 1.3 and 4 times the usual.
    """
    M = len(world.objectives)
    shares = rng.dirichlet([8.0, 5.0, 3.0])
    chance = rng.standard_normal((3, M))
    intents = Hidden(shares, chance - shares @ chance, np.zeros((3, M)), np.ones(3))
    rare = rng.uniform(0.06, 0.12)
    low = rng.uniform(0.35, 0.65)
    levels = Hidden(
        np.array([low * (1 - rare), (1 - low) * (1 - rare), rare]),
        np.zeros((3, M)),
        np.zeros((3, M)),
        np.array([0.6, 1.3, 4.0]) * np.exp(0.1 * rng.standard_normal(3)),
    )
    return replace(world, hidden=intents.crossed(levels))


def with_leak(world: World, rng: np.random.Generator) -> World:
    """Let one upstream model be trained with a leak, so that its highest scores mislead.

    A feature that leaked the label in training is stale when the model serves: on some rows it
    lifts the score by 2.5 to 3.5 spreads, and just these rows are less likely to be positive.
    """
    M = len(world.objectives)
    m, share = rng.integers(M), rng.uniform(0.25, 0.4)
    chance, score = np.zeros((2, M)), np.zeros((2, M))
    chance[1, m] = -rng.uniform(1.5, 2.5) * np.sqrt(world.covariance[m, m])
    score[1, m] = rng.uniform(2.5, 3.5) * _observed_spread(world)[m] - chance[1, m]
    return replace(world, hidden=Hidden(np.array([1 - share, share]), chance, score, np.ones(2)))


def with_requests(world: World, rng: np.random.Generator) -> World:
    """Let users differ: an activity that all objectives share, tastes, and errors about both.

    Upstream knows one candidate from another, but of whole users it knows little, and the less the
    more an objective's errors: some scores of a request are off by .2 together, others by 3.
    """
    M = len(world.objectives)
    activity = rng.uniform(0.3, 0.7, M) * np.where(np.arange(M) % 3 == 1, -0.5, 1.0)
    chance = np.column_stack([activity, np.diag(rng.uniform(0.3, 0.6, M))])
    errors = rng.permutation(np.linspace(0.2, 3.0, M))
    score = np.column_stack([rng.normal(0.0, 0.8, M), np.diag(errors)])
    return replace(world, requests=RequestEffects(chance, score))


def with_interactions(world: World, rng: np.random.Generator) -> World:
    """Add score × score, score × context and context × context effects, and vary the loadings."""
    M = len(world.objectives)
    every = list(combinations(range(M), 2))
    pairs = [every[i] for i in rng.choice(len(every), 5, replace=False)]
    cells, factors = _cells(rng, world.categories, M, spread=0.15), world.loadings.shape[1]
    return replace(
        world,
        interactions=Interactions(
            spread=_observed_spread(world),
            pairs=tuple(pairs),
            products=0.28 * rng.standard_normal((len(pairs), M)),
            slopes=Additive(np.zeros(M), draw_effects(rng, world.categories, M, 0.22)),
            cells=cells,
            gain=Additive(np.zeros(factors), draw_effects(rng, world.categories, factors, 0.2)),
        ),
    )


def with_three_way(world: World, rng: np.random.Generator) -> World:
    """Add effects of three inputs to those of two: two scores and a feature, and the reverse."""
    world = with_interactions(world, rng)
    assert world.interactions is not None
    M, pairs = len(world.objectives), len(world.interactions.pairs)
    effects = draw_effects(rng, world.categories, pairs * M, 0.3)
    return replace(
        world,
        interactions=replace(
            world.interactions,
            product_effects={f: each.reshape(-1, pairs, M) for f, each in effects.items()},
            slope_cells=_cells(rng, world.categories, M, spread=0.25),
        ),
    )


def _observed_spread(world: World) -> Floats:
    """Return the usual spread of o in a context: of Σ and the noise at the mean of log τ."""
    return np.asarray(np.sqrt(np.diag(world.covariance) + np.exp(2 * world.log_tau.base)))


def _cells(
    rng: np.random.Generator, categories: Mapping[str, Floats], M: int, spread: float
) -> dict[tuple[str, str], Floats]:
    """Draw effects of pairs of features that neither feature has by itself, with this spread."""
    cells = {}
    for (f, p), (g, q) in combinations(categories.items(), 2):
        cell = rng.standard_normal((p.size, q.size, M))
        cell -= np.einsum("i,ijm->jm", p, cell)
        cell -= np.einsum("j,ijm->im", q, cell)[:, None]
        cells[f, g] = cell * (spread / np.sqrt(np.einsum("i,j,ijm->m", p, q, cell**2)))
    return cells


@dataclass(frozen=True, kw_only=True)
class LabRecipe(Recipe):
    """What all draws of one kind of world share.

    Attributes:
        violation: adds to a drawn world what breaks an assumption.
        solved_on: rows on which a redraw gets the ceiling of the preset.
    """

    prevalence: Mapping[str, float] = field(default_factory=lambda: _USUAL)
    jitter: float = 0.3
    tau: float = 0.7
    violation: Violation
    # Both worlds are seen on the same draws, so a block is mostly enough: its luck cancels.
    solved_on: int = 16_384


RECIPES: dict[str, Recipe] = {
    **PRESETS,
    # Worlds that each break one assumption of those above. Their numbers are drawn more widely.
    "backbone": LabRecipe(
        context={"hour": 24, "age": 8, "gender": 3},
        loadings=((1.1, 0.3), (0.6, -0.9), (1.0, -0.3), (0.2, 1.1), (-0.8, 0.6)),
        tau=0.8,
        seed=4,
        violation=with_backbone,
    ),
    "tails": LabRecipe(
        context={"age": 8, "gender": 3, "region": 6},
        loadings=((1.0, 0.4), (0.9, -0.6), (0.7, 0.8), (-0.4, 1.0), (-0.9, -0.5)),
        seed=5,
        violation=with_tails,
    ),
    "interactions": LabRecipe(
        context={"hour": 24, "age": 8, "gender": 3},
        loadings=((1.0, 0.5), (0.8, -0.8), (0.9, 0.2), (-0.3, 1.0), (-0.9, -0.4)),
        tau=0.6,
        seed=6,
        violation=with_interactions,
        # Pairs of hours and ages are seldom seen: their luck cancels on many requests only.
        solved_on=131_072,
    ),
    "leak": LabRecipe(
        context={"age": 8, "gender": 3, "region": 6},
        loadings=((1.1, 0.3), (0.7, -0.7), (1.0, 0.4), (-0.2, 1.1), (-0.8, -0.6)),
        seed=7,
        violation=with_leak,
    ),
    "requests": LabRecipe(
        prevalence=_FREQUENT,
        context={"hour": 24, "age": 8, "gender": 3},
        loadings=((0.8, 0.4), (0.6, -0.7), (0.8, 0.2), (-0.3, 0.8), (-0.7, -0.4)),
        seed=8,
        violation=with_requests,
        # Requests are fewer than rows: their luck cancels on many of them.
        solved_on=131_072,
    ),
    # Worlds that do not flatter: what logs of real services are like.
    "clustered": LabRecipe(
        prevalence=_FREQUENT,
        context={"hour": 24, "age": 8, "gender": 3, "device": 40},
        loadings=((1.0, 0.4), (0.7, -0.7), (0.9, 0.3), (-0.3, 1.0), (-0.8, -0.5)),
        seed=9,
        violation=with_clusters,
    ),
    "drifting": LabRecipe(
        context={"hour": 24, "age": 8, "region": 6},
        loadings=((1.0, 0.4), (0.8, -0.7), (0.9, 0.2), (-0.3, 1.0), (-0.8, -0.5)),
        seed=10,
        violation=with_drift,
    ),
    "three-way": LabRecipe(
        prevalence=_FREQUENT,
        context={"age": 8, "gender": 3, "region": 6},
        loadings=((1.0, 0.5), (0.8, -0.8), (0.9, 0.2), (-0.3, 1.0), (-0.9, -0.4)),
        tau=0.6,
        seed=11,
        violation=with_three_way,
        solved_on=131_072,
    ),
    "nested": LabRecipe(
        prevalence=_FREQUENT,
        context={"age": 8, "gender": 3, "region": 30},
        loadings=((1.0, 0.4), (0.8, -0.6), (0.8, 0.5), (-0.3, 1.0), (-0.8, -0.5)),
        tau=0.8,
        seed=12,
        violation=with_cities,
        solved_on=131_072,
    ),
    # About one click in a list of 25 to 100.
    "skewed-lists": LabRecipe(
        prevalence={"click": 0.016, "image": 0.02, "info": 0.006, "rating": 0.004, "deals": 0.004},
        context={"platform": 20},
        loadings=((0.9, 0.2), (0.8, -0.5), (0.7, 0.4), (0.5, 0.7), (0.6, -0.6)),
        tau=1.0,
        seed=13,
        violation=with_lists,
        solved_on=131_072,
    ),
}
