"""Bend kernels: the curves and surfaces of a block of rows, four heads at a time (`Bends`).

Rows are the inner loop: the cells of two bends stay in the nearest cache, and no sum waits for
another.
"""

__all__ = ["add_bends", "find_cells"]

from typing import Any

import numpy as np

from harmonrank.kernel import lane_function
from harmonrank.lane_maths import as_floats, bounded, cut_off, put_pairs, within
from harmonrank.lanes import ROWS, SINGLES, item, lanes, pair_lanes, put_lanes, row_lanes
from harmonrank.model.bends import CURVE_CELLS, HEADS, SURFACE_CELLS
from harmonrank.model.head_room import BLOCK

_ZERO, _ONE = np.float32(0), np.float32(1)
_CURVE_CELLS, _SURFACE_CELLS = np.float32(CURVE_CELLS), np.float32(SURFACE_CELLS)
_LAST_CURVE, _LAST_SURFACE = np.int32(CURVE_CELLS - 1), np.int32(SURFACE_CELLS - 1)
# Numbers of a cell, of a row of cells, and of a whole bend.
_CURVE_CELL, _CURVE = np.int32(2 * HEADS), CURVE_CELLS * 2 * HEADS
_SURFACE_CELL, _SURFACE_ROW = np.int32(4 * HEADS), np.int32(SURFACE_CELLS * 4 * HEADS)
_SURFACE = SURFACE_CELLS * SURFACE_CELLS * 4 * HEADS


@lane_function
def find_cells(
    inputs: int, v: Any, low: Any, per_unit: Any, cell: Any, share: Any, row: Any, column: Any,
    part: Any,
) -> None:  # fmt: skip
    """Write where the cell of each input begins, and how far it is on the way through it."""
    for i in range(inputs):
        for r in range(i * BLOCK, (i + 1) * BLOCK, ROWS):
            place = bounded((row_lanes(v, r) - low[i]) * per_unit[i], _ZERO, _ONE)
            fine = place * _CURVE_CELLS
            found = within(cut_off(fine), _LAST_CURVE)
            put_lanes(cell, r, found * _CURVE_CELL)
            put_pairs(share, 2 * r, fine - as_floats(found))
            coarse = place * _SURFACE_CELLS
            found = within(cut_off(coarse), _LAST_SURFACE)
            put_lanes(row, r, found * _SURFACE_ROW)
            put_lanes(column, r, found * _SURFACE_CELL)
            put_pairs(part, 2 * r, coarse - as_floats(found))


@lane_function
def _add_curves(
    begin: int, end: int, curved: Any, curves: Any, n: int, cell: Any, share: Any, sums: Any
) -> None:
    """Add the curves of four heads, two at a time."""
    for t in range(begin, end, 2):
        i, k, start = curved[t] * BLOCK, curved[t + 1] * BLOCK, t * _CURVE
        for r in range(n):
            one = lanes(curves, start + item(cell, i + r))
            two = lanes(curves, start + _CURVE + item(cell, k + r))
            total = lanes(sums, r * SINGLES) + one * pair_lanes(share, 2 * (i + r))
            put_lanes(sums, r * SINGLES, total + two * pair_lanes(share, 2 * (k + r)))


@lane_function
def _add_surfaces(
    begin: int, end: int, pairs: Any, surfaces: Any, n: int, row: Any, column: Any, part: Any,
    sums: Any,
) -> None:  # fmt: skip
    """Add the surfaces of four heads, two at a time."""
    for t in range(begin, end, 2):
        i, j, start = pairs[t, 0] * BLOCK, pairs[t, 1] * BLOCK, t * _SURFACE
        k, m, other = pairs[t + 1, 0] * BLOCK, pairs[t + 1, 1] * BLOCK, start + _SURFACE
        for r in range(n):
            at = start + item(row, i + r) + item(column, j + r)
            one = lanes(surfaces, at) + item(part, 2 * (i + r) + 1) * lanes(surfaces, at + SINGLES)
            at = other + item(row, k + r) + item(column, m + r)
            two = lanes(surfaces, at) + item(part, 2 * (k + r) + 1) * lanes(surfaces, at + SINGLES)
            total = lanes(sums, r * SINGLES) + one * pair_lanes(part, 2 * (j + r))
            put_lanes(sums, r * SINGLES, total + two * pair_lanes(part, 2 * (m + r)))


@lane_function
def add_bends(
    n: int, heads: Any, curved: Any, curve_ends: Any, curves: Any, pairs: Any, surface_ends: Any,
    surfaces: Any, cell: Any, share: Any, row: Any, column: Any, part: Any, sums: Any, z: Any,
) -> None:  # fmt: skip
    """Add all curves and surfaces to the logits."""
    for block in range(len(curve_ends) - 1):
        begin, end = curve_ends[block], curve_ends[block + 1]
        first, last = surface_ends[block], surface_ends[block + 1]
        if begin < end or first < last:
            for k in range(sums.size):
                sums[k] = _ZERO
            _add_curves(begin, end, curved, curves, n, cell, share, sums)
            _add_surfaces(first, last, pairs, surfaces, n, row, column, part, sums)
            for h in range(block * HEADS, min(len(heads), (block + 1) * HEADS)):
                at, k = heads[h] * BLOCK, 2 * (h - block * HEADS)
                for r in range(n):
                    own = item(sums, r * SINGLES + k) + item(sums, r * SINGLES + k + 1)
                    z[at + r] += own
