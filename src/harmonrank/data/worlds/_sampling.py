"""Drawing rows from a world, block by block, so that the same seed always gives the same rows."""

__all__ = ["BLOCK", "Sample", "draw"]

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from harmonrank.data.worlds._parts import Floats
from harmonrank.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.data.worlds._world import World

# Every block has its own generators: rows do not depend on threads nor on where a sample ends.
BLOCK = 16_384
# Scores stay inside (0, 1) in float32 too: its largest number below 1 has a logit of 16.6, its
# smallest normal one −87.3. No preset gets as far as this.
LOWEST, HIGHEST = -80.0, 15.0


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a world as plain arrays.

    Attributes:
        scores: (rows, objectives), what upstream reports, strictly inside (0, 1). The values are
            exact in float32 too, so that a float32 column loses nothing.
        labels: (rows, objectives), 0 or 1.
        context: one array of category numbers per feature, equal within a request.
        request: (rows,), the number of the row at which the request begins: rises over time.
        time: (rows,), in [0, 1), equal within a request.
        truth: (rows, objectives), the exact p_m given all scores, context and time, or None.
    """

    scores: Floats
    labels: NDArray[np.uint8]
    context: dict[str, NDArray[np.int16]]
    request: NDArray[np.int64]
    time: Floats
    truth: Floats | None


@dataclass(frozen=True, eq=False)
class _Draws:
    """The randomness of one block: nothing in it depends on a world's numbers."""

    request: NDArray[np.int64]
    context: dict[str, NDArray[np.int16]]
    factors: Floats
    own: Floats
    noise: Floats
    label: Floats


def draw(
    world: "World", rows: int, seed: int, start: int, horizon: int | None, with_truth: bool
) -> Sample:
    """Return rows start … start + rows of the stream that `seed` stands for."""
    for name, value in (("rows", rows), ("seed", seed), ("start", start)):
        if value < 0:
            raise UsageError(f"`{name}` must be 0 or more. Got {value}.")
    end = start + rows
    horizon = end if horizon is None else horizon
    if horizon < end:
        raise UsageError(f"`horizon` must reach to the last row, {end}. Got {horizon}.")
    out = _empty(world, rows, with_truth)
    for block in range(start // BLOCK, -(-end // BLOCK)):
        first, last = max(start, block * BLOCK), min(end, (block + 1) * BLOCK)
        inside = slice(first - block * BLOCK, last - block * BLOCK)
        draws = _cut(_block(world, seed, block), inside)
        _fill(world, draws, max(horizon, 1), out, slice(first - start, last - start))
    if out.truth is not None:
        _fill_truth(world, out, out.truth)
    return out


def _empty(world: "World", rows: int, with_truth: bool) -> Sample:
    shape = (rows, len(world.objectives))
    return Sample(
        scores=np.empty(shape),
        labels=np.empty(shape, np.uint8),
        context={name: np.empty(rows, np.int16) for name in world.categories},
        request=np.empty(rows, np.int64),
        time=np.empty(rows),
        truth=np.empty(shape) if with_truth else None,
    )


def _block(world: "World", seed: int, block: int) -> _Draws:
    """Draw a whole block; objectives draw by their name, so a sub-set of them draws the same."""
    rng = _generator(seed, block, 0)
    shortest, longest = world.request_rows
    sizes = rng.integers(shortest, longest + 1, BLOCK // shortest + 1)
    starts = np.cumsum(sizes) - sizes
    of_row = np.repeat(np.arange(sizes.size), sizes)[:BLOCK]
    context = {}
    for name, share in world.categories.items():
        category = np.searchsorted(np.cumsum(share)[:-1], rng.random(sizes.size), side="right")
        context[name] = category.astype(np.int16)[of_row]
    factors = rng.standard_normal((BLOCK, world.loadings.shape[1]))
    normals = np.empty((2, BLOCK, len(world.objectives)))
    label = np.empty((BLOCK, len(world.objectives)))
    for m, objective in enumerate(world.objectives):
        rng = _generator(seed, block, 1 + crc32(objective.encode()))
        normals[:, :, m] = rng.standard_normal((2, BLOCK))
        label[:, m] = rng.random(BLOCK)
    own, noise = normals
    return _Draws(block * BLOCK + starts[of_row], context, factors, own, noise, label)


def _generator(seed: int, block: int, key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block, key)))


def _cut(draws: _Draws, rows: slice) -> _Draws:
    return _Draws(
        draws.request[rows],
        {name: values[rows] for name, values in draws.context.items()},
        draws.factors[rows],
        draws.own[rows],
        draws.noise[rows],
        draws.label[rows],
    )


def _fill(world: "World", draws: _Draws, horizon: int, out: Sample, rows: slice) -> None:
    time = draws.request / horizon
    view = world.at(draws.context, time)
    z = view.mu + draws.factors @ world.loadings.T + world.own * draws.own
    o = z + view.tau * draws.noise
    logit = np.clip(view.a * o + view.b, LOWEST, HIGHEST)
    out.scores[rows] = (1 / (1 + np.exp(-logit))).astype(np.float32)
    out.labels[rows] = draws.label < 1 / (1 + np.exp(-z))
    out.request[rows] = draws.request
    out.time[rows] = time
    for name, values in draws.context.items():
        out.context[name][rows] = values


def _fill_truth(world: "World", sample: Sample, truth: Floats) -> None:
    # From the scores as stored, not from o: the truth is given what a fusion sees. Many rows at a
    # time keep the threads busy, all at once would need too much memory.
    for first in range(0, len(truth), 16 * BLOCK):
        rows = slice(first, first + 16 * BLOCK)
        context = {name: values[rows] for name, values in sample.context.items()}
        truth[rows] = world.posterior(sample.scores[rows], context, sample.time[rows])
