"""Curve kernels: the curves and surfaces of a block of rows, four heads at a time (`Curves`).

Rows are the inner loop: the cells of two curves stay in the nearest cache, and no sum waits for
another.
"""

__all__ = ["add_curves_and_surfaces", "find_cells"]

from typing import Any

import numpy as np

from harmonrank.model.scorer.curves import HEADS, SURFACE_CELLS
from harmonrank.model.scorer.head_room import BLOCK
from harmonrank.support.kernel import simd_function
from harmonrank.support.simd import ROWS, SINGLES, item, pair_simd, put_simd, simd
from harmonrank.support.simd_maths import folded, of_all, widened

_ZERO, _ONE = np.float32(0), np.float32(1)
_SURFACE_CELLS, _LAST_SURFACE = np.float32(SURFACE_CELLS), np.int32(SURFACE_CELLS - 1)
# Numbers of a cell, of a row of cells, and of a whole surface.
_CURVE_CELL = np.int32(2 * HEADS)
_SURFACE_CELL, _SURFACE_ROW = np.int32(4 * HEADS), np.int32(SURFACE_CELLS * 4 * HEADS)
_SURFACE = SURFACE_CELLS * SURFACE_CELLS * 4 * HEADS


@simd_function
def find_cells(inputs: int, curves: Any, room: Any) -> None:
    """Write where the cell of each input begins, and how far it is on the way through it."""
    low, per_unit, v, cell, share = curves.low, curves.per_unit, room.v, room.cell, room.share
    row, column, part = room.row, room.column, room.part
    cells, last = np.float32(curves.cells), np.int32(curves.cells - 1)
    for i in range(inputs):
        own, pairs = slice(i * BLOCK, (i + 1) * BLOCK), slice(2 * i * BLOCK, 2 * (i + 1) * BLOCK)
        x, to, way = v[own], cell[own], share[pairs]
        for r in range(BLOCK):
            fine = _bounded((x[r] - low[i]) * per_unit[i]) * cells
            whole = _cell(fine, last)
            to[r] = whole * _CURVE_CELL
            way[2 * r], way[2 * r + 1] = _ONE, fine - np.float32(whole)
        above, beside, way = row[own], column[own], part[pairs]
        for r in range(BLOCK):
            coarse = _bounded((x[r] - low[i]) * per_unit[i]) * _SURFACE_CELLS
            whole = _cell(coarse, _LAST_SURFACE)
            above[r], beside[r] = whole * _SURFACE_ROW, whole * _SURFACE_CELL
            way[2 * r], way[2 * r + 1] = _ONE, coarse - np.float32(whole)


@simd_function
def _bounded(place: Any) -> Any:
    place = place if place > _ZERO else _ZERO
    return place if place < _ONE else _ONE


@simd_function
def _cell(place: Any, last: Any) -> Any:
    whole = np.int32(place)
    return whole if whole < last else last


@simd_function
def _curve(cells: Any, start: int, cell: Any, share: Any, i: int) -> Any:
    """Return a and b·x of four heads, for input and row i."""
    return simd(cells, start + item(cell, i)) * pair_simd(share, 2 * i)


@simd_function
def _add_curves(begin: int, end: int, n: int, curves: Any, room: Any) -> None:
    """Add the curves of four heads, two at a time."""
    curved, cells = curves.curved, curves.curve_cells
    cell, share, sums = room.cell, room.share, room.sums
    size = curves.cells * 2 * HEADS
    for t in range(begin, end, 2):
        i, j, start = curved[t] * BLOCK, curved[t + 1] * BLOCK, t * size
        for r in range(n):
            total = simd(sums, r * SINGLES) + _curve(cells, start, cell, share, i + r)
            total = total + _curve(cells, start + size, cell, share, j + r)
            put_simd(sums, r * SINGLES, total)


@simd_function
def _surface(surfaces: Any, start: int, row: Any, column: Any, part: Any, i: int, j: int) -> Any:
    """Return a + c·x and (b + d·x)·y of four heads, for first and second input and row i and j."""
    at = start + item(row, i) + item(column, j)
    near = simd(surfaces, at) + item(part, 2 * i + 1) * simd(surfaces, at + SINGLES)
    return near * pair_simd(part, 2 * j)


@simd_function
def _add_surfaces(begin: int, end: int, n: int, curves: Any, room: Any) -> None:
    """Add the surfaces of four heads, two at a time."""
    pairs, surfaces, sums = curves.pairs, curves.surface_cells, room.sums
    row, column, part = room.row, room.column, room.part
    for t in range(begin, end, 2):
        i, j, start = pairs[t, 0] * BLOCK, pairs[t, 1] * BLOCK, t * _SURFACE
        k, m, other = pairs[t + 1, 0] * BLOCK, pairs[t + 1, 1] * BLOCK, start + _SURFACE
        for r in range(n):
            total = simd(sums, r * SINGLES)
            total = total + _surface(surfaces, start, row, column, part, i + r, j + r)
            total = total + _surface(surfaces, other, row, column, part, k + r, m + r)
            put_simd(sums, r * SINGLES, total)


@simd_function
def add_curves_and_surfaces(n: int, curves: Any, room: Any) -> None:
    """Add all curves and surfaces to the logits, which `maps` begins with, in the same order."""
    sums, maps = room.sums, room.maps
    curve_ends, surface_ends = curves.curve_ends, curves.surface_ends
    width = maps.size // BLOCK
    for block in range(len(curve_ends) - 1):
        begin, end = curve_ends[block], curve_ends[block + 1]
        first, last = surface_ends[block], surface_ends[block + 1]
        if begin < end or first < last:
            for k in range(0, sums.size, ROWS):
                put_simd(sums, k, of_all(_ZERO))
            _add_curves(begin, end, n, curves, room)
            _add_surfaces(first, last, n, curves, room)
            for r in range(n):
                at = r * width + block * HEADS
                own = widened(folded(simd(sums, r * SINGLES)))
                # What follows the last head takes zeros.
                put_simd(maps, at, simd(maps, at) + own)
