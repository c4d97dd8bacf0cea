"""Sample: rows of a world as plain arrays, filled block by block."""

__all__ = ["Sample", "sample_blocks"]

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.errors import UsageError
from harmonrank.support.options import MOST_WHOLE, checked_whole
from harmonrank.worlds.draws import BLOCK, Floats


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a world as plain arrays.

    Attributes:
        scores: (rows, objectives), what upstream reports, strictly inside (0, 1). The values are
            exact in float32 too, so that a float32 column loses nothing.
        labels: (rows, objectives), 0 or 1.
        context: one array of category numbers per feature, equal within a request but for what
            differs from one candidate to the next.
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
        """Return a sample whose rows are not yet filled."""
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
    """Return rows `start` … `start + rows` of an endless stream of blocks.

    Args:
        empty: Makes a sample of a number of rows that are not yet filled.
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
