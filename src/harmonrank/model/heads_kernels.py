"""The kernels that score with heads: from scores to probabilities, a block of rows at a time.

Each stage is a loop over the rows of a block, whose numbers stay in the nearest cache. Where every
number is treated alike the row is the last axis, so that LLVM takes several rows at once; where a
row looks its heads up in a table, several heads are taken at once (`harmonrank.lanes`). A row's
numbers never depend on the other rows of its block, down to the last bit.
"""

__all__ = ["BLOCK", "average_rows", "score_rows"]

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import product_kernel
from harmonrank.lanes import DOUBLES, SINGLES, lanes, put_lanes
from harmonrank.model.elementary import take_logarithms, take_logits, take_sigmoids
from harmonrank.model.residual import CURVE_KNOTS, NEAR, SURFACE_KNOTS

Array = NDArray[Any]

BLOCK = 64

_ZERO, _ONE = np.float32(0), np.float32(1)
_CURVE_CELLS, _SURFACE_CELLS = CURVE_KNOTS - 1, SURFACE_KNOTS - 1
_NEXT_ROW = SURFACE_KNOTS * SINGLES  # From a knot of a surface to the next along its first input.


class _Block(NamedTuple):
    """The numbers of some rows; but for `maps` and `sums`, rows are the last axis."""

    x: Array  # (M,): scores, then their coordinates
    z: Array  # (M,): logits, then probabilities
    distance: Array  # (): d
    v: Array  # (2M + 1,): the inputs of the residual, float32
    cell: Array  # (2M + 1,): the cell of each input between the knots of curves
    share: Array  # (2M + 1,): how far it is on the way to the next knot
    wide: Array  # (2M + 1,): the same between the knots of surfaces
    part: Array
    maps: Array  # rows of heads, and surprises after them, flat
    sums: Array  # rows of eight heads, flat


@product_kernel
def _new_block(M: int, width: int) -> Any:
    V = 2 * M + 1
    return _Block(
        np.full((M, BLOCK), 0.5), np.zeros((M, BLOCK)), np.ones(BLOCK),
        np.zeros((V, BLOCK), np.float32), np.zeros((V, BLOCK), np.int32),
        np.zeros((V, BLOCK), np.float32), np.zeros((V, BLOCK), np.int32),
        np.zeros((V, BLOCK), np.float32), np.zeros(BLOCK * width),
        np.zeros(BLOCK * SINGLES, np.float32),
    )  # fmt: skip


@product_kernel
def _bend(
    x: Any, n: int, low: float, high: float, per_unit: float, table: Any, below: float, above: float
) -> None:
    """Replace logits by coordinates, as `Coordinate` defines them."""
    top = table.size - 1.0
    for r in range(n):
        place = (x[r] - low) * per_unit
        # In this order, so that NaN becomes a place of the table.
        place = place if place > 0.0 else 0.0
        place = place if place < top else top
        cell = np.uint32(min(np.int32(place), np.int32(table.size - 2)))
        near = table[cell]
        bent = near + (place - cell) * (table[cell + np.uint32(1)] - near)
        bent += below * min(x[r] - low, 0.0)
        x[r] = bent + above * max(x[r] - high, 0.0)


@product_kernel
def _apply(
    of_row: Any, first: int, n: int, record: int, M: int, W: int, table: Any, b: Any
) -> None:
    """Write the W numbers of each row that are linear in its coordinates, given its context.

    The last lanes may hold what follows in the table; nobody reads these.
    """
    width = b.maps.size // BLOCK
    for r in range(n):
        k = of_row[first + r] * record
        for w in range(0, W, DOUBLES):
            total = lanes(table, k + w)
            for j in range(M):
                total = total + b.x[j, r] * lanes(table, k + (1 + j) * W + w)
            put_lanes(b.maps, r * width + w, total)


@product_kernel
def _inputs(
    of_row: Any, first: int, n: int, record: int, M: int, W: int, table: Any, unit: Any, b: Any
) -> None:
    """Write u, and r and d where surprises are known (see `inputs_of`)."""
    width, known = b.maps.size // BLOCK, W > M
    for r in range(n):
        k = of_row[first + r] * record + (1 + M) * W
        distance = 0.0
        for j in range(M):
            u = b.x[j, r] * unit[j] + table[k + j]
            b.v[j, r] = u
            if known:
                surprise = b.maps[r * width + M + j]
                distance += surprise * (u - table[k + M + j])
                b.v[M + j, r] = surprise * table[k + 2 * M + j]
        b.distance[r] = distance / M + NEAR
    if known:
        take_logarithms(b.distance)
        for r in range(n):
            b.v[2 * M, r] = b.distance[r]


@product_kernel
def _find(v: Any, n: int, low: Any, per_unit: Any, cells: int, cell: Any, share: Any) -> None:
    """Write the cell of each input between the knots, and the share of its upper end."""
    many, last = np.float32(cells), np.int32(cells - 1)
    for i in range(len(v)):
        for r in range(n):
            place = (v[i, r] - low[i]) * per_unit[i]
            # In this order, so that NaN becomes a cell of the table.
            place = place if place > _ZERO else _ZERO
            place = (place if place < _ONE else _ONE) * many
            whole = min(np.int32(place), last)
            cell[i, r] = whole
            share[i, r] = place - np.float32(whole)


@product_kernel
def _add_curves(curved: Any, curves: Any, first: int, n: int, b: Any) -> None:
    """Add the curves of eight heads, whose tables begin at `first`."""
    for i in curved:
        for r in range(n):
            k, x = first + b.cell[i, r] * SINGLES, b.share[i, r]
            curve = (_ONE - x) * lanes(curves, k) + x * lanes(curves, k + SINGLES)
            put_lanes(b.sums, r * SINGLES, lanes(b.sums, r * SINGLES) + curve)
        first += CURVE_KNOTS * SINGLES


@product_kernel
def _add_surfaces(pairs: Any, surfaces: Any, first: int, n: int, b: Any) -> None:
    """Add the surfaces of eight heads, whose tables begin at `first`.

    Rows are the inner loop: one surface stays in the nearest cache, and no sum waits for another.
    """
    for t in range(len(pairs)):
        i, j = pairs[t, 0], pairs[t, 1]
        for r in range(n):
            k = first + (b.wide[i, r] * SURFACE_KNOTS + b.wide[j, r]) * SINGLES
            x, y = b.part[i, r], b.part[j, r]
            near = (_ONE - y) * lanes(surfaces, k) + y * lanes(surfaces, k + SINGLES)
            k += _NEXT_ROW
            far = (_ONE - y) * lanes(surfaces, k) + y * lanes(surfaces, k + SINGLES)
            surface = (_ONE - x) * near + x * far
            put_lanes(b.sums, r * SINGLES, lanes(b.sums, r * SINGLES) + surface)
        first += SURFACE_KNOTS * SURFACE_KNOTS * SINGLES


@product_kernel
def _add_bends(n: int, curved: Any, curves: Any, pairs: Any, surfaces: Any, b: Any) -> None:
    """Add all curves and surfaces to the logits, eight heads at a time."""
    M = len(b.z)
    blocks = -(-M // SINGLES)
    for block in range(blocks):
        b.sums[:] = _ZERO
        _add_curves(curved, curves, block * (curves.size // blocks), n, b)
        _add_surfaces(pairs, surfaces, block * (surfaces.size // blocks), n, b)
        for m in range(block * SINGLES, min(M, (block + 1) * SINGLES)):
            for r in range(n):
                b.z[m, r] += b.sums[(r - block) * SINGLES + m]


@product_kernel
def score_rows(
    begin: int, end: int, scores: Any, of_row: Any, low: Any, high: Any, per_unit: Any, table: Any,
    below: Any, above: Any, straight: Any, record: int, W: int, contexts: Any, unit: Any, knot: Any,
    knots_per_unit: Any, curved: Any, curves: Any, pairs: Any, surfaces: Any, p: Any, fused: Any,
    effective: Any,
) -> None:  # fmt: skip
    """Write the probabilities of some rows, or their sum by effective weights.

    The arguments are the fields of `Tables`, in order, between the rows and what is written.
    """
    M = scores.shape[1]
    width = -(-W // DOUBLES) * DOUBLES
    bends = len(curved) + len(pairs) > 0
    b = _new_block(M, width)
    x, z = b.x, b.z
    for first in range(begin, end, BLOCK):
        n = min(BLOCK, end - first)
        for j in range(M):
            for r in range(n):
                x[j, r] = scores[first + r, j]
        take_logits(x.reshape(-1))
        for j in range(M):
            if not straight[j]:
                _bend(x[j], n, low[j], high[j], per_unit[j], table[j], below[j], above[j])
        _apply(of_row, first, n, record, M, W, contexts, b)
        for m in range(M):
            for r in range(n):
                z[m, r] = b.maps[r * width + m]
        if bends:
            _inputs(of_row, first, n, record, M, W, contexts, unit, b)
            _find(b.v, n, knot, knots_per_unit, _CURVE_CELLS, b.cell, b.share)
            _find(b.v, n, knot, knots_per_unit, _SURFACE_CELLS, b.wide, b.part)
            _add_bends(n, curved, curves, pairs, surfaces, b)
        take_sigmoids(z.reshape(-1))
        for r in range(n if len(effective) else 0):
            fused[first + r] = 0.0
        for m in range(M):
            for r in range(n):
                if len(effective):
                    fused[first + r] += effective[m] * z[m, r]
                else:
                    p[first + r, m] = z[m, r]


@product_kernel
def average_rows(
    begin: int, end: int, places: Any, of_row: Any, pair: Any, root: Any, points: Any, record: int,
    W: int, contexts: Any, unit: Any, knot: Any, knots_per_unit: Any, curved: Any, curves: Any,
    pairs: Any, surfaces: Any, means: Any,
) -> None:  # fmt: skip
    """Write the mean probabilities of completions of some rows: places + root·point, each point.

    Coordinates are given, and not scores; the rest is as `score_rows` has it.
    """
    K, M = points.shape
    width, rows = -(-W // DOUBLES) * DOUBLES, BLOCK // K
    b, of = _new_block(M, width), np.zeros(BLOCK, np.int64)
    x, z = b.x, b.z
    for first in range(begin, end, rows):
        n = min(rows, end - first) * K
        for r in range(n):
            i, k = first + r // K, r % K
            of[r] = of_row[i]
            for m in range(M):
                x[m, r] = places[i, m]
                for j in range(m + 1):
                    x[m, r] += root[pair[i], m, j] * points[k, j]
        _apply(of, 0, n, record, M, W, contexts, b)
        for m in range(M):
            for r in range(n):
                z[m, r] = b.maps[r * width + m]
        _inputs(of, 0, n, record, M, W, contexts, unit, b)
        _find(b.v, n, knot, knots_per_unit, _CURVE_CELLS, b.cell, b.share)
        _find(b.v, n, knot, knots_per_unit, _SURFACE_CELLS, b.wide, b.part)
        _add_bends(n, curved, curves, pairs, surfaces, b)
        take_sigmoids(z.reshape(-1))
        for i in range(first, first + n // K):
            for m in range(M):
                total = 0.0
                for r in range((i - first) * K, (i - first + 1) * K):
                    total += z[m, r]
                means[i, m] = total / K
