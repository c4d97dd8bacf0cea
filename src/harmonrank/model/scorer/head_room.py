"""Head room: memory in which the kernels that score with heads keep a block of rows."""

__all__ = ["BLOCK", "HeadRoom", "aligned"]

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.simd import SINGLES

Array = NDArray[Any]

BLOCK = 64
_LINE = 64  # Bytes of a cache line.


def aligned(size: int, dtype: Any) -> Array:
    """Return zeros that begin a cache line; a load across two lines takes twice the time."""
    item = np.dtype(dtype).itemsize
    room = np.zeros(size + _LINE // item, dtype)
    first = -room.ctypes.data % _LINE // item
    return room[first : first + size]


class HeadRoom(NamedTuple):
    """Memory for a block of rows, flat; but for `maps` and `sums`, rows are the last axis."""

    context: Array  # (): the number of the row's context
    x: Array  # (M,): scores, then their coordinates
    z: Array  # (M,): logits, then probabilities
    distance: Array  # (): d
    v: Array  # (2M + 1,): the inputs of the residual, float32
    cell: Array  # (2M + 1,): where the cell of each input begins in a curve
    share: Array  # (2M + 1,), pairs: 1, and how far it is on the way to the next knot
    row: Array  # (2M + 1,): where its row of cells begins in a surface
    column: Array  # (2M + 1,): where its cell begins in a row of them
    part: Array  # (2M + 1,), pairs: as `share`, between the knots of surfaces
    maps: Array  # rows of heads, and surprises after them
    sums: Array  # rows of four heads, two sums each

    @classmethod
    def of(cls, M: int, W: int) -> "HeadRoom":
        """Return room for M objectives and records with W columns."""
        V, width = (2 * M + 1) * BLOCK, -(-W // SINGLES) * SINGLES
        x, z, distance = (aligned(size, np.float64) for size in (M * BLOCK, M * BLOCK, BLOCK))
        x[:], distance[:] = 0.5, 1.0
        cell, row, column = (aligned(V, np.int32) for _ in range(3))
        v, share, part = (aligned(size, np.float32) for size in (V, 2 * V, 2 * V))
        maps, sums = aligned(BLOCK * width, np.float64), aligned(BLOCK * SINGLES, np.float32)
        context = np.zeros(BLOCK, np.int64)
        return cls(context, x, z, distance, v, cell, share, row, column, part, maps, sums)
