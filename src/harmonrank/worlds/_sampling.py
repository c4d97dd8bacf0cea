"""Drawing rows from a world, block by block, so that the same seed always gives the same rows."""

__all__ = ["Sample", "draw", "sample_blocks"]

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.errors import UsageError
from harmonrank.support.options import MOST_WHOLE, checked_whole
from harmonrank.worlds._draws import BLOCK, draw_block, latent_logits, upstream_scores
from harmonrank.worlds._parts import Floats

if TYPE_CHECKING:
    from harmonrank.worlds._world import World


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
        truth: (rows, objectives), the exact p_m given all scores, context and time, or None. Where
            rows of a request share effects, it is given these too, so that labels are independent.
    """

    scores: Floats
    labels: NDArray[np.uint8]
    context: dict[str, NDArray[np.int16]]
    request: NDArray[np.int64]
    time: Floats
    truth: Floats | None

    @classmethod
    def empty(
        cls, objectives: Sequence[str], features: Iterable[str], rows: int, *, with_truth: bool
    ) -> "Sample":
        """Return rows that are still to be filled."""
        shape = (rows, len(objectives))
        return cls(
            scores=np.empty(shape),
            labels=np.empty(shape, np.uint8),
            context={name: np.empty(rows, np.int16) for name in features},
            request=np.empty(rows, np.int64),
            time=np.empty(rows),
            truth=np.empty(shape) if with_truth else None,
        )

    def put(self, rows: slice, other: "Sample", inside: slice) -> None:
        """Fill rows by rows `inside` of another sample; its truth too if both have one."""
        for name in ("scores", "labels", "request", "time"):
            getattr(self, name)[rows] = getattr(other, name)[inside]
        for name, values in other.context.items():
            self.context[name][rows] = values[inside]
        if self.truth is not None and other.truth is not None:
            self.truth[rows] = other.truth[inside]


def sample_blocks(
    empty: Callable[[int], Sample],
    block_of: Callable[[int, float], Sample],
    rows: int,
    seed: int,
    start: int,
    horizon: int | None,
) -> Sample:
    """Return rows start … start + rows of an endless stream of blocks.

    Args:
        empty: Makes a sample of so many rows that are still to be filled.
        block_of: Draws a whole block, given its number and the horizon.
        rows: how many.
        seed: What the blocks are drawn with.
        start: number of the first row.
        horizon: number of the row at which time would be 1; the end of the sample if left out.
    """
    for name, value in (("rows", rows), ("seed", seed), ("start", start)):
        checked_whole(name, value)
    end = start + rows
    horizon = end if horizon is None else checked_whole("horizon", horizon, most=4 * MOST_WHOLE)
    if horizon < end:
        raise UsageError(f"`horizon` must reach to the last row, {end}. Got {horizon}.")
    out = empty(rows)
    for block in range(start // BLOCK, -(-end // BLOCK)):
        first, last = max(start, block * BLOCK), min(end, (block + 1) * BLOCK)
        inside = slice(first - block * BLOCK, last - block * BLOCK)
        out.put(slice(first - start, last - start), block_of(block, max(horizon, 1)), inside)
    return out


def draw(
    world: "World", rows: int, seed: int, start: int, horizon: int | None, with_truth: bool
) -> Sample:
    """Return rows start … start + rows of the stream that `seed` stands for."""

    def empty(count: int) -> Sample:
        return Sample.empty(world.objectives, world.categories, count, with_truth=with_truth)

    def block_of(block: int, horizon: float) -> Sample:
        draws, drawn = draw_block(world, seed, block)
        time = drawn.request / horizon
        view = world.at(drawn.context, time)
        z, o = latent_logits(world, view, drawn.context, draws)
        labels = (drawn.label < 1 / (1 + np.exp(-z))).astype(np.uint8)
        scores = upstream_scores(view, o).astype(np.float64)
        truth = None
        if with_truth and world.requests is not None:
            truth = world.posterior(scores, drawn.context, time, request=draws.request)
        return Sample(scores, labels, drawn.context, drawn.request, time, truth)

    out = sample_blocks(empty, block_of, rows, seed, start, horizon)
    if out.truth is not None and world.requests is None:
        _fill_truth(world, out, out.truth)
    return out


def _fill_truth(world: "World", sample: Sample, truth: Floats) -> None:
    # From the scores as stored, not from o: the truth is given what a fusion sees. Many rows at a
    # time keep the threads busy, all at once would need too much memory.
    for first in range(0, len(truth), 16 * BLOCK):
        rows = slice(first, first + 16 * BLOCK)
        context = {name: values[rows] for name, values in sample.context.items()}
        truth[rows] = world.posterior(sample.scores[rows], context, sample.time[rows])
