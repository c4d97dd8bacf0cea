"""Draws: the randomness of rows, and what a world makes of it."""

__all__ = [
    "BLOCK",
    "BlockRows",
    "Draws",
    "block_generator",
    "draw_block",
    "draw_requests",
    "latent_logits",
    "upstream_scores",
]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from harmonrank.worlds._parts import Floats

if TYPE_CHECKING:
    from harmonrank.worlds._view import View
    from harmonrank.worlds._world import World

# Every block has its own generators: rows do not depend on threads nor on where a sample ends.
BLOCK = 16_384
# Scores stay inside (0, 1) in float32 too: its largest number below 1 has a logit of 16.6, its
# smallest normal one −87.3. No preset gets as far as this.
LOWEST, HIGHEST = -80.0, 15.0


@dataclass(frozen=True, eq=False)
class Draws:
    """The randomness of some rows: nothing in it depends on a world's numbers.

    Attributes:
        factors: (rows, factors), standard normal, as all that follow but `hidden`.
        own: (rows, objectives).
        noise: (rows, objectives).
        backbone: (rows,), the noise that all upstream models share.
        hidden: (rows,), uniform; it decides on the hidden class.
        request: (rows, effects), equal within a request.
    """

    factors: Floats
    own: Floats
    noise: Floats
    backbone: Floats
    hidden: Floats
    request: Floats


@dataclass(frozen=True, eq=False)
class BlockRows:
    """The rows of a block: requests, their context, and uniform draws that decide on labels."""

    request: NDArray[np.int64]
    context: dict[str, NDArray[np.int16]]
    label: Floats


def draw_block(world: "World", seed: int, block: int) -> tuple[Draws, BlockRows]:
    """Draw a whole block; objectives draw by their name, so a sub-set of them draws the same."""
    rng = block_generator(seed, block, 0)
    starts, of_row = draw_requests(rng, world.request_rows)
    context = {}
    for name, share in world.categories.items():
        category = np.searchsorted(np.cumsum(share)[:-1], rng.random(starts.size), side="right")
        context[name] = category.astype(np.int16)[of_row]
    factors = rng.standard_normal((BLOCK, world.loadings.shape[1]))
    own, noise = normals = np.empty((2, BLOCK, len(world.objectives)))
    label = np.empty((BLOCK, len(world.objectives)))
    for m, objective in enumerate(world.objectives):
        rng = block_generator(seed, block, 1 + crc32(objective.encode()))
        normals[:, :, m] = rng.standard_normal((2, BLOCK))
        label[:, m] = rng.random(BLOCK)
    unseen = block_generator(seed, block, 0, 0)
    shared = block_generator(seed, block, 0, 1)
    request = shared.standard_normal((starts.size, world.request_effects.count))[of_row]
    backbone, hidden = unseen.standard_normal(BLOCK), unseen.random(BLOCK)
    draws = Draws(factors, own, noise, backbone, hidden, request)
    return draws, BlockRows(block * BLOCK + starts[of_row], context, label)


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


def latent_logits(
    world: "World", view: "View", context: Mapping[str, NDArray[Any]], draws: Draws
) -> tuple[Floats, Floats]:
    """Return the logits of the labels and what upstream observes, each (rows, objectives)."""
    hidden, shared = world.classes, world.shared_noise
    kind = hidden.of(draws.hidden)
    z = view.mu + (view.gain * draws.factors) @ world.loadings.T + world.own * draws.own
    z += hidden.chance[kind]
    noise = np.sqrt(1 - shared**2) * draws.noise + shared * draws.backbone[:, None]
    o = z + hidden.score[kind] + view.tau * hidden.noise[kind, None] * noise
    z += world.effect(o, view, context)
    effects = world.request_effects
    return z + effects.chances(draws.request), o + effects.scores(draws.request)


def upstream_scores(view: "View", o: Floats) -> NDArray[np.float32]:
    """Return p̂ = σ(a o + b), strictly inside (0, 1)."""
    logit = np.clip(view.a * o + view.b, LOWEST, HIGHEST)
    return (1 / (1 + np.exp(-logit))).astype(np.float32)
