"""Draws: random effects of the context, and the random numbers of a block of rows."""

__all__ = [
    "BLOCK",
    "Additive",
    "Draws",
    "Floats",
    "block_generator",
    "draw_block",
    "draw_effects",
    "draw_requests",
    "draw_shares",
]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BLOCK = 16_384
"""Every block has its own generators, so rows depend neither on threads nor on a sample's end."""


@dataclass(frozen=True, eq=False)
class Additive:
    """A value per objective that depends on the context: base_m + Σ_k effect_k[c_k, m].

    >>> additive = Additive(base=np.zeros(1), effects={"gender": np.array([[-1.0], [1.0]])})
    >>> additive.at({"gender": np.array([1, 0])}, rows=2)
    array([[ 1.], [-1.]])

    Attributes:
        base: (objectives,).
        effects: per context feature (categories, objectives); a feature may be absent.
    """

    base: Floats
    effects: Mapping[str, Floats] = field(default_factory=dict)

    def at(self, context: Mapping[str, NDArray[Any]], rows: int) -> Floats:
        """Return the value at every row, (rows, objectives)."""
        value = np.tile(self.base, (rows, 1))
        for name, effect in self.effects.items():
            value += effect[context[name]]
        return value

    def take(self, columns: Sequence[int]) -> "Additive":
        """Keep these objectives."""
        keep = list(columns)
        return Additive(self.base[keep], {k: e[:, keep] for k, e in self.effects.items()})

    def shifted(self, shift: Floats) -> "Additive":
        """Add a constant per objective."""
        return Additive(self.base + shift, self.effects)

    def scaled(self, factor: Floats) -> "Additive":
        """Multiply by a constant per objective."""
        return Additive(self.base * factor, {k: e * factor for k, e in self.effects.items()})


def draw_shares(rng: np.random.Generator, size: int) -> Floats:
    """Draw the shares of a feature's categories, smooth along it and not uniform."""
    share = np.exp(_smooth(0.8 * rng.standard_normal((size, 1)))[:, 0])
    shares: Floats = share / share.sum()
    return shares


def draw_effects(
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


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of a block of rows, from which a world makes its rows.

    Attributes:
        seed: The seed of the block.
        block: Its number.
        request: (rows,), the number of the row at which the request begins.
        context: Category numbers of every feature.
        factors: (rows, factors), standard normal, as the next two.
        own: (rows, objectives).
        noise: (rows, objectives).
        label: (rows, objectives), uniform; a label is 1 where this is below its chance.
    """

    seed: int
    block: int
    request: NDArray[np.int64]
    context: dict[str, NDArray[np.int16]]
    factors: Floats
    own: Floats
    noise: Floats
    label: Floats


def draw_block(
    seed: int,
    block: int,
    objectives: Sequence[str],
    categories: Mapping[str, Floats],
    factors: int,
    request_rows: tuple[int, int],
) -> Draws:
    """Draw a whole block; objectives draw by their name, so a sub-set of them draws the same."""
    rng = block_generator(seed, block, 0)
    starts, of_row = draw_requests(rng, request_rows)
    context = {}
    for name, share in categories.items():
        category = np.searchsorted(np.cumsum(share)[:-1], rng.random(starts.size), side="right")
        context[name] = category.astype(np.int16)[of_row]
    common = rng.standard_normal((BLOCK, factors))
    own, noise = normals = np.empty((2, BLOCK, len(objectives)))
    label = np.empty((BLOCK, len(objectives)))
    for m, objective in enumerate(objectives):
        rng = block_generator(seed, block, 1 + crc32(objective.encode()))
        normals[:, :, m] = rng.standard_normal((2, BLOCK))
        label[:, m] = rng.random(BLOCK)
    request = block * BLOCK + starts[of_row]
    return Draws(seed, block, request, context, common, own, noise, label)


def draw_requests(
    rng: np.random.Generator, request_rows: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the requests of a block start, and the request of each of its rows."""
    shortest, longest = request_rows
    sizes = rng.integers(shortest, longest + 1, BLOCK // shortest + 1)
    return np.cumsum(sizes) - sizes, np.repeat(np.arange(sizes.size), sizes)[:BLOCK]


def block_generator(seed: int, block: int, *key: int) -> np.random.Generator:
    """Return a generator of a block that no other block and no other key has."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block, *key)))
