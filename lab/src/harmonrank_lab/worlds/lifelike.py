"""What makes worlds like the logs of real services: users, drift, cities, lists of items."""

__all__ = ["with_cities", "with_clusters", "with_drift", "with_lists"]

from dataclasses import replace

import numpy as np

from harmonrank.worlds import Additive, draw_effects, draw_shares
from harmonrank_lab.worlds.full_world import World
from harmonrank_lab.worlds.parts import Floats, WorldDrift
from harmonrank_lab.worlds.shared_effects import RequestEffects, Users

_USERS, _CITIES, _PLACES = 1_000, 5_000, 2_000


def with_clusters(world: World, rng: np.random.Generator) -> World:
    """Let users and requests have effects that upstream does not know either.

    Either has an activity that all objectives share, and a taste for each. What the context tells
    of a user is the same in all of the user's requests.
    """
    M = len(world.objectives)
    sign = np.where(np.arange(M) % 3 == 1, -0.5, 1.0)
    own, user = (
        np.column_stack([size * rng.uniform(0.6, 1.4, M) * sign, size * np.diag(rng.random(M))])
        for size in (0.4, 0.7)
    )
    effects = replace(RequestEffects.none(M), hidden=np.hstack([own, user]))
    told = tuple(name for name in world.categories if name != "hour")
    return replace(world, requests=effects, users=Users(_USERS, told, M + 1))


def with_drift(world: World, rng: np.random.Generator) -> World:
    """Let mean logits and effects of the context move, and upstream models stay as they were."""
    M = len(world.objectives)
    slope = rng.uniform(0.3, 0.8, M) * rng.permutation(np.where(np.arange(M) % 2, -1.0, 1.0))
    speed = Additive(slope, draw_effects(rng, world.categories, M, 0.6))
    drift = WorldDrift(speed, np.full(M, 0.1), rng.random(M), followed=False)
    return replace(world, drift=drift)


def with_cities(world: World, rng: np.random.Generator) -> World:
    """Put cities of very unequal size into the regions; most of their effect is the region's."""
    M, regions = len(world.objectives), world.categories["region"].size
    share, region = _skewed_shares(rng, _CITIES), rng.permutation(np.arange(_CITIES) % regions)
    mu, b = dict(world.mu.effects), dict(world.b.effects)
    mu["city"] = mu.pop("region")[region] + _free_effects(rng, share, M, 0.35)
    b["city"] = b.pop("region")[region] + _free_effects(rng, share, M, 0.35)
    sizes = np.bincount(region, share).astype(np.float64)
    return replace(
        world,
        categories={**world.categories, "region": sizes, "city": share},
        mu=Additive(world.mu.base, mu),
        b=Additive(world.b.base, b),
        nested={"city": ("region", region.astype(np.int16))},
    )


def with_lists(world: World, rng: np.random.Generator) -> World:
    """Make requests long, and give the items columns of whose effects upstream knows most.

    Nearly all items of a list are of one place. Upstream is off by an error that all items of a
    list share, and users are in moods of which nobody knows, so that few requests seem to tell much
    about a place.
    """
    M = len(world.objectives)
    columns = {"stars": draw_shares(rng, 6), "place": _skewed_shares(rng, _PLACES)}
    mu = {name: _free_effects(rng, share, M, 0.2) for name, share in columns.items()}
    unknown = rng.uniform(0.1, 0.3, M)
    # The offset takes off a score what upstream does not know of the column's effect.
    b = {name: -unknown * world.a * effect for name, effect in mu.items()}
    errors, moods = (
        size * np.column_stack([rng.uniform(0.6, 1.6, M), np.diag(rng.uniform(0.6, 1.6, M))])
        for size in (0.5, 0.75)
    )
    return replace(
        world,
        request_rows=(25, 100),
        categories={**world.categories, **columns},
        item_columns={"stars": 0.2, "place": 0.9},
        mu=Additive(world.mu.base, {**world.mu.effects, **mu}),
        b=Additive(world.b.base, {**world.b.effects, **b}),
        requests=RequestEffects(np.zeros((M, 0)), errors, moods),
    )


def _skewed_shares(rng: np.random.Generator, size: int) -> Floats:
    """Return shares that fall as 1/(rank + 5), in no order."""
    share = 1 / (rng.permutation(size) + 5.0)
    return np.asarray(share / share.sum())


def _free_effects(rng: np.random.Generator, share: Floats, M: int, spread: float) -> Floats:
    """Draw effects of categories that have no order, with this spread over rows."""
    effect = rng.standard_normal((share.size, M))
    effect -= share @ effect
    return np.asarray(effect * spread / np.sqrt(share @ effect**2))
