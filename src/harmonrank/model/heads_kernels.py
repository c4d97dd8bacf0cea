"""The kernels that score with heads: from scores to probabilities, a block of rows at a time.

Each stage is a loop over the rows of a block, whose numbers stay in the nearest cache. Where every
number is treated alike the row is the last axis, so that LLVM takes several rows at once; where a
row looks its heads up in a table, several heads are taken at once (`harmonrank.lanes`). A row's
numbers never depend on the other rows of its block, down to the last bit.
"""

__all__ = ["average_rows", "score_rows"]

from typing import Any

from harmonrank.kernel import lane_function, lane_kernel
from harmonrank.lane_maths import as_doubles, bounded, cut_off
from harmonrank.lanes import DOUBLES, SINGLES, double_lanes, item, lanes, put_lanes
from harmonrank.model.bend_kernels import add_bends, find_cells
from harmonrank.model.elementary import take_logarithms, take_logits, take_sigmoids
from harmonrank.model.head_room import BLOCK
from harmonrank.model.residual import NEAR


@lane_function
def _bend(
    x: Any, j: int, n: int, low: float, per_unit: float, cells: int, table: Any, cell: Any
) -> None:
    """Replace logits by coordinates: look their cells up and add the share of a step."""
    for r in range(0, BLOCK, SINGLES):
        # The first cell of the table is what lies below the grid, the last what lies above.
        place = (double_lanes(x, j * BLOCK + r) - low) * per_unit + 1.0
        found = cut_off(bounded(place, 0.0, cells - 1.0))
        put_lanes(cell, r, found)
        put_lanes(x, j * BLOCK + r, place - as_doubles(found))
    for r in range(n):
        k = 2 * (cells * j + item(cell, r))
        x[j * BLOCK + r] = item(table, k) + x[j * BLOCK + r] * item(table, k + 1)


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


@lane_kernel
def score_rows(
    begin: int, end: int, scores: Any, of_row: Any, low: Any, per_unit: Any, table: Any,
    straight: Any, record: int, W: int, contexts: Any, unit: Any, knot: Any, knots_per_unit: Any,
    heads: Any, curved: Any, curve_ends: Any, curves: Any, pairs: Any, surface_ends: Any,
    surfaces: Any, p: Any, fused: Any, effective: Any, x: Any, z: Any, distance: Any, v: Any,
    cell: Any, share: Any, row: Any, column: Any, part: Any, maps: Any, sums: Any,
) -> None:  # fmt: skip
    """Write the probabilities of some rows, or their sum by effective weights.

    The arguments are the fields of `Tables`, in order, between the rows and what is written; then
    those of `HeadRoom`.
    """
    M, width = scores.shape[1], maps.size // BLOCK
    cells = table.size // (2 * M)
    for first in range(begin, end, BLOCK):
        n = BLOCK if first + BLOCK < end else end - first
        for r in range(n):
            for j in range(M):
                x[j * BLOCK + r] = scores[first + r, j]
        take_logits(x)
        for j in range(M):
            if not straight[j]:
                _bend(x, j, n, low[j], per_unit[j], cells, table, cell)
        _apply(of_row, first, n, record, M, W, contexts, x, maps)
        for r in range(n):
            for m in range(M):
                z[m * BLOCK + r] = item(maps, r * width + m)
        if len(curved) + len(pairs) > 0:
            _inputs(of_row, first, n, record, M, W, contexts, unit, x, distance, v, maps)
            inputs = 2 * M + 1 if W > M else M
            find_cells(inputs, v, knot, knots_per_unit, cell, share, row, column, part)
            add_bends(
                n, heads, curved, curve_ends, curves, pairs, surface_ends, surfaces, cell, share,
                row, column, part, sums, z,
            )  # fmt: skip
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
    W: int, contexts: Any, unit: Any, knot: Any, knots_per_unit: Any, heads: Any, curved: Any,
    curve_ends: Any, curves: Any, pairs: Any, surface_ends: Any, surfaces: Any, means: Any, of: Any,
    x: Any, z: Any, distance: Any, v: Any, cell: Any, share: Any, row: Any, column: Any, part: Any,
    maps: Any, sums: Any,
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
        inputs = 2 * M + 1 if W > M else M
        find_cells(inputs, v, knot, knots_per_unit, cell, share, row, column, part)
        add_bends(
            n, heads, curved, curve_ends, curves, pairs, surface_ends, surfaces, cell, share, row,
            column, part, sums, z,
        )  # fmt: skip
        take_sigmoids(z)
        for i in range(first, first + n // K):
            for m in range(M):
                total = 0.0
                for r in range((i - first) * K, (i - first + 1) * K):
                    total += item(z, m * BLOCK + r)
                means[i, m] = total / K
