"""Draws: the randomness of a block of rows, which depends on no world's numbers."""

__all__ = ["BLOCK", "Draws", "block_generator", "draw_block", "draw_requests"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from harmonrank.worlds.additive import Floats

BLOCK = 16_384
"""Every block has its own generators: rows depend neither on threads nor on where a sample ends."""


@dataclass(frozen=True, eq=False)
class Draws:
    """The rows of a block before a world makes something of them.

    Attributes:
        seed: What the block is drawn with.
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
