"""The kernels that score with heads: from scores to probabilities, a block of rows at a time.

Each stage is a loop over the rows of a block, whose numbers stay in the nearest cache. Where every
number is treated alike the row is the last axis, so that LLVM takes several rows at once; where a
row looks its heads up in a table, several heads are taken at once (`harmonrank.lanes`). A row's
numbers never depend on the other rows of its block, down to the last bit.
"""

__all__ = ["BLOCK", "HeadRoom", "average_rows", "score_rows"]

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import lane_function, lane_kernel
from harmonrank.lane_maths import as_floats, at_most, choose, cut_off, larger, of_all, within
from harmonrank.lanes import DOUBLES, ROWS, SINGLES, item, lanes, put_lanes, row_lanes
from harmonrank.model.elementary import take_logarithms, take_logits, take_sigmoids
from harmonrank.model.residual import CURVE_KNOTS, NEAR, SURFACE_KNOTS

Array = NDArray[Any]

BLOCK = 64

_ZERO, _ONE = np.float32(0), np.float32(1)
_CURVE_CELLS, _SURFACE_CELLS = np.float32(CURVE_KNOTS - 1), np.float32(SURFACE_KNOTS - 1)
_LAST_CURVE, _LAST_SURFACE = np.int32(CURVE_KNOTS - 2), np.int32(SURFACE_KNOTS - 2)
_NEXT_ROW = SURFACE_KNOTS * SINGLES  # From a knot of a surface to the next along its first input.


class HeadRoom(NamedTuple):
    """Memory for a block of rows, flat; but for `maps` and `sums`, rows are the last axis."""

    x: Array  # (M,): scores, then their coordinates
    z: Array  # (M,): logits, then probabilities
    distance: Array  # (): d
    v: Array  # (2M + 1,): the inputs of the residual, float32
    cell: Array  # (2M + 1,): the cell of each input between the knots of curves
    share: Array  # (2M + 1,): how far it is on the way to the next knot
    wide: Array  # (2M + 1,): the same between the knots of surfaces
    part: Array
    maps: Array  # rows of heads, and surprises after them
    sums: Array  # rows of eight heads

    @classmethod
    def of(cls, M: int, W: int) -> "HeadRoom":
        """Return room for M objectives and records with W columns."""
        V, width = 2 * M + 1, -(-W // DOUBLES) * DOUBLES
        v, share, part = (np.zeros(V * BLOCK, np.float32) for _ in range(3))
        cell, wide = np.zeros(V * BLOCK, np.int32), np.zeros(V * BLOCK, np.int32)
        maps, sums = np.zeros(BLOCK * width), np.zeros(BLOCK * SINGLES, np.float32)
        x, z = np.full(M * BLOCK, 0.5), np.zeros(M * BLOCK)
        return cls(x, z, np.ones(BLOCK), v, cell, share, wide, part, maps, sums)


@lane_function
def _bend(
    x: Any, j: int, n: int, low: float, high: float, per_unit: float, table: Any, below: float,
    above: float,
) -> None:  # fmt: skip
    """Replace logits by coordinates, as `Coordinate` defines them."""
    size = table.shape[1]
    top = size - 1.0
    for r in range(j * BLOCK, j * BLOCK + n):
        place = (x[r] - low) * per_unit
        # In this order, so that NaN becomes a place of the table.
        place = place if place > 0.0 else 0.0
        place = place if place < top else top
        cell = np.int32(place)
        cell = cell if cell < size - 2 else np.int32(size - 2)
        near = table[j, np.uint32(cell)]
        bent = near + (place - cell) * (table[j, np.uint32(cell) + np.uint32(1)] - near)
        under, over = x[r] - low, x[r] - high
        bent += below * (under if under < 0.0 else 0.0)
        x[r] = bent + above * (over if over > 0.0 else 0.0)


@lane_function
def _apply(
    of_row: Any, first: int, n: int, record: int, M: int, W: int, table: Any, x: Any, maps: Any
) -> None:
    """Write the W numbers of each row that are linear in its coordinates, given its context.

    The last lanes may hold what follows in the table; nobody reads these.
    """
    width = maps.size // BLOCK
    for r in range(n):
        k = item(of_row, first + r) * record
        for w in range(0, W, DOUBLES):
            total = lanes(table, k + w)
            for j in range(M):
                total = total + item(x, j * BLOCK + r) * lanes(table, k + (1 + j) * W + w)
            put_lanes(maps, r * width + w, total)


@lane_function
def _inputs(
    of_row: Any, first: int, n: int, record: int, M: int, W: int, table: Any, unit: Any, x: Any,
    distances: Any, v: Any, maps: Any,
) -> None:  # fmt: skip
    """Write u, and r and d where surprises are known (see `inputs_of`)."""
    width, known = maps.size // BLOCK, W > M
    for r in range(n):
        k = item(of_row, first + r) * record + (1 + M) * W
        distance = 0.0
        for j in range(M):
            u = item(x, j * BLOCK + r) * unit[j] + item(table, k + j)
            v[j * BLOCK + r] = u
            if known:
                surprise = item(maps, r * width + M + j)
                distance += surprise * (u - item(table, k + M + j))
                v[(M + j) * BLOCK + r] = surprise * item(table, k + 2 * M + j)
        distances[r] = distance / M + NEAR
    if known:
        take_logarithms(distances)
        for r in range(n):
            v[2 * M * BLOCK + r] = distances[r]


@lane_function
def _find(v: Any, low: Any, per_unit: Any, many: Any, last: Any, cells: Any, shares: Any) -> None:
    """Write the cell of each input between the knots, and the share of its upper end."""
    one = of_all(_ONE)
    for i in range(len(low)):
        for r in range(i * BLOCK, (i + 1) * BLOCK, ROWS):
            place = larger((row_lanes(v, r) - low[i]) * per_unit[i], of_all(_ZERO))  # 0 if NaN
            place = choose(at_most(one, place), one, place) * many
            cell = within(cut_off(place), last)
            put_lanes(cells, r, cell)
            put_lanes(shares, r, place - as_floats(cell))


@lane_function
def _add_curves(
    curved: Any, curves: Any, first: int, n: int, cell: Any, share: Any, sums: Any
) -> None:
    """Add the curves of eight heads, whose tables begin at `first`."""
    for t in range(len(curved)):
        i, start = curved[t] * BLOCK, first + t * CURVE_KNOTS * SINGLES
        for r in range(n):
            k, x = start + item(cell, i + r) * SINGLES, item(share, i + r)
            curve = (_ONE - x) * lanes(curves, k) + x * lanes(curves, k + SINGLES)
            put_lanes(sums, r * SINGLES, lanes(sums, r * SINGLES) + curve)


@lane_function
def _add_surfaces(
    pairs: Any, surfaces: Any, first: int, n: int, wide: Any, part: Any, sums: Any
) -> None:
    """Add the surfaces of eight heads, whose tables begin at `first`.

    Rows are the inner loop: one surface stays in the nearest cache, and no sum waits for another.
    """
    for t in range(len(pairs)):
        i, j = pairs[t, 0] * BLOCK, pairs[t, 1] * BLOCK
        start = first + t * SURFACE_KNOTS * SURFACE_KNOTS * SINGLES
        for r in range(n):
            k = start + (item(wide, i + r) * SURFACE_KNOTS + item(wide, j + r)) * SINGLES
            x, y = item(part, i + r), item(part, j + r)
            near = (_ONE - y) * lanes(surfaces, k) + y * lanes(surfaces, k + SINGLES)
            k += _NEXT_ROW
            far = (_ONE - y) * lanes(surfaces, k) + y * lanes(surfaces, k + SINGLES)
            surface = (_ONE - x) * near + x * far
            put_lanes(sums, r * SINGLES, lanes(sums, r * SINGLES) + surface)


@lane_function
def _add_bends(
    n: int, M: int, curved: Any, curves: Any, pairs: Any, surfaces: Any, cell: Any, share: Any,
    wide: Any, part: Any, sums: Any, z: Any,
) -> None:  # fmt: skip
    """Add all curves and surfaces to the logits, eight heads at a time."""
    blocks = -(-M // SINGLES)
    for block in range(blocks):
        for k in range(sums.size):
            sums[k] = _ZERO
        _add_curves(curved, curves, block * (curves.size // blocks), n, cell, share, sums)
        _add_surfaces(pairs, surfaces, block * (surfaces.size // blocks), n, wide, part, sums)
        after = (block + 1) * SINGLES
        for m in range(block * SINGLES, M if after > M else after):
            for r in range(n):
                z[m * BLOCK + r] += item(sums, (r - block) * SINGLES + m)


@lane_kernel
def score_rows(
    begin: int, end: int, scores: Any, of_row: Any, low: Any, high: Any, per_unit: Any, table: Any,
    below: Any, above: Any, straight: Any, record: int, W: int, contexts: Any, unit: Any, knot: Any,
    knots_per_unit: Any, curved: Any, curves: Any, pairs: Any, surfaces: Any, p: Any, fused: Any,
    effective: Any, x: Any, z: Any, distance: Any, v: Any, cell: Any, share: Any, wide: Any,
    part: Any, maps: Any, sums: Any,
) -> None:  # fmt: skip
    """Write the probabilities of some rows, or their sum by effective weights.

    The arguments are the fields of `Tables`, in order, between the rows and what is written; then
    those of `HeadRoom`.
    """
    M, width = scores.shape[1], maps.size // BLOCK
    for first in range(begin, end, BLOCK):
        n = BLOCK if first + BLOCK < end else end - first
        for r in range(n):
            for j in range(M):
                x[j * BLOCK + r] = scores[first + r, j]
        take_logits(x)
        for j in range(M):
            if not straight[j]:
                _bend(x, j, n, low[j], high[j], per_unit[j], table, below[j], above[j])
        _apply(of_row, first, n, record, M, W, contexts, x, maps)
        for r in range(n):
            for m in range(M):
                z[m * BLOCK + r] = item(maps, r * width + m)
        if len(curved) + len(pairs) > 0:
            _inputs(of_row, first, n, record, M, W, contexts, unit, x, distance, v, maps)
            _find(v, knot, knots_per_unit, _CURVE_CELLS, _LAST_CURVE, cell, share)
            _find(v, knot, knots_per_unit, _SURFACE_CELLS, _LAST_SURFACE, wide, part)
            _add_bends(n, M, curved, curves, pairs, surfaces, cell, share, wide, part, sums, z)
        take_sigmoids(z)
        for r in range(n):
            total = 0.0
            for m in range(M):
                if len(effective):
                    total += effective[m] * item(z, m * BLOCK + r)
                else:
                    p[first + r, m] = item(z, m * BLOCK + r)
            if len(effective):
                fused[first + r] = total


@lane_kernel
def average_rows(
    begin: int, end: int, places: Any, of_row: Any, pair: Any, root: Any, points: Any, record: int,
    W: int, contexts: Any, unit: Any, knot: Any, knots_per_unit: Any, curved: Any, curves: Any,
    pairs: Any, surfaces: Any, means: Any, of: Any, x: Any, z: Any, distance: Any, v: Any,
    cell: Any, share: Any, wide: Any, part: Any, maps: Any, sums: Any,
) -> None:  # fmt: skip
    """Write the mean probabilities of completions of some rows: places + root·point, each point.

    Coordinates are given, and not scores; the rest is as `score_rows` has it. `of` has room for the
    contexts of a block.
    """
    K, M = points.shape
    width, rows = maps.size // BLOCK, BLOCK // K
    for first in range(begin, end, rows):
        n = (rows if first + rows < end else end - first) * K
        for r in range(n):
            i, k = first + r // K, r % K
            of[r] = of_row[i]
            for m in range(M):
                x[m * BLOCK + r] = places[i, m]
                for j in range(m + 1):
                    x[m * BLOCK + r] += root[pair[i], m, j] * points[k, j]
        _apply(of, 0, n, record, M, W, contexts, x, maps)
        for r in range(n):
            for m in range(M):
                z[m * BLOCK + r] = item(maps, r * width + m)
        _inputs(of, 0, n, record, M, W, contexts, unit, x, distance, v, maps)
        _find(v, knot, knots_per_unit, _CURVE_CELLS, _LAST_CURVE, cell, share)
        _find(v, knot, knots_per_unit, _SURFACE_CELLS, _LAST_SURFACE, wide, part)
        _add_bends(n, M, curved, curves, pairs, surfaces, cell, share, wide, part, sums, z)
        take_sigmoids(z)
        for i in range(first, first + n // K):
            for m in range(M):
                total = 0.0
                for r in range((i - first) * K, (i - first + 1) * K):
                    total += item(z, m * BLOCK + r)
                means[i, m] = total / K
