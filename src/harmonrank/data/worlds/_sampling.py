"""Drawing rows from a world, block by block, so that the same seed always gives the same rows."""

__all__ = ["Sample", "draw"]

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harmonrank.data.worlds._draws import (
    BLOCK,
    Draws,
    Rows,
    draw_block,
    latent_logits,
    upstream_scores,
)
from harmonrank.data.worlds._parts import Floats
from harmonrank.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.data.worlds._world import World


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
        draws, drawn = draw_block(world, seed, block)
        place = slice(first - start, last - start)
        _fill(world, draws.cut(inside), drawn.cut(inside), max(horizon, 1), out, place)
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


def _fill(
    world: "World", draws: Draws, drawn: Rows, horizon: int, out: Sample, rows: slice
) -> None:
    time = drawn.request / horizon
    view = world.at(drawn.context, time)
    z, o = latent_logits(world, view, drawn.context, draws)
    out.scores[rows] = upstream_scores(view, o)
    out.labels[rows] = drawn.label < 1 / (1 + np.exp(-z))
    out.request[rows] = drawn.request
    out.time[rows] = time
    for name, values in drawn.context.items():
        out.context[name][rows] = values


def _fill_truth(world: "World", sample: Sample, truth: Floats) -> None:
    # From the scores as stored, not from o: the truth is given what a fusion sees. Many rows at a
    # time keep the threads busy, all at once would need too much memory.
    for first in range(0, len(truth), 16 * BLOCK):
        rows = slice(first, first + 16 * BLOCK)
        context = {name: values[rows] for name, values in sample.context.items()}
        truth[rows] = world.posterior(sample.scores[rows], context, sample.time[rows])
