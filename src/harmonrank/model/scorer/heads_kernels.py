"""The kernels that score with heads: from scores to probabilities, a block of rows at a time.

Each stage is a loop over the rows of a block, whose numbers stay in the nearest cache. Where every
number is treated alike the row is the last axis, so that LLVM takes several rows at once; where a
row looks its heads up in a table, several heads are taken at once (`support.simd`). A row's
numbers never depend on the other rows of its block, down to the last bit.
"""

__all__ = ["average_rows", "score_rows"]

from typing import Any

import numpy as np

from harmonrank.model.scorer.bend_kernels import add_bends, find_cells
from harmonrank.model.scorer.elementary import take_logarithms, take_logits, take_sigmoids
from harmonrank.model.scorer.head_room import BLOCK
from harmonrank.model.terms.residual import NEAR
from harmonrank.support.kernel import simd_function, simd_kernel
from harmonrank.support.simd import SINGLES, double_simd, item, put_item, put_simd


@simd_function
def _number(codes: Any, slots: Any, first: int, n: int, context: Any) -> None:
    """Write the place of each row's context among all contexts."""
    features = len(slots)
    for r in range(n):
        context[r] = 0
    for f in range(features):
        for r in range(n):
            code = item(codes, (first + r) * features + f)
            context[r] = context[r] * slots[f] + code


@simd_function
def _turn(rows: Any, first: int, width: int, n: int, M: int, columns: Any) -> None:
    """Write the first M numbers of each row as columns."""
    for m in range(M):
        column = columns[m * BLOCK : (m + 1) * BLOCK]
        for r in range(n):
            column[r] = item(rows, (first + r) * width + m)


@simd_function
def _bend(
    x: Any, j: int, n: int, low: float, per_unit: float, cells: int, table: Any, cell: Any
) -> None:
    """Replace logits by coordinates: look their cells up and add the share of a step."""
    own = x[j * BLOCK : (j + 1) * BLOCK]
    for r in range(BLOCK):
        # The first cell of the table is what lies below the grid, the last what lies above.
        place = (own[r] - low) * per_unit + 1.0
        bounded = place if place > 0.0 else 0.0
        cell[r] = np.int32(bounded if bounded < cells - 1.0 else cells - 1.0)
        own[r] = place - cell[r]
    for r in range(n):
        k = 2 * (cells * j + cell[r])
        own[r] = item(table, k) + own[r] * item(table, k + 1)


@simd_function
def _apply(context: Any, n: int, record: int, M: int, table: Any, x: Any, maps: Any) -> None:
    """Write the numbers of each row that are linear in its coordinates, given its context."""
    width = maps.size // BLOCK
    for r in range(n):
        k = item(context, r) * record
        for w in range(0, width - SINGLES, 2 * SINGLES):
            total, other = double_simd(table, k + w), double_simd(table, k + w + SINGLES)
            for j in range(M):
                at, number = k + (1 + j) * width + w, item(x, j * BLOCK + r)
                total = total + number * double_simd(table, at)
                other = other + number * double_simd(table, at + SINGLES)
            put_simd(maps, r * width + w, total)
            put_simd(maps, r * width + w + SINGLES, other)
        if width % (2 * SINGLES):
            w = width - SINGLES
            total = double_simd(table, k + w)
            for j in range(M):
                at, number = k + (1 + j) * width + w, item(x, j * BLOCK + r)
                total = total + number * double_simd(table, at)
            put_simd(maps, r * width + w, total)


@simd_function
def _inputs(
    context: Any, n: int, record: int, M: int, W: int, table: Any, unit: Any, x: Any,
    distances: Any, v: Any, maps: Any,
) -> None:  # fmt: skip
    """Write u, and r and d where surprises are known (see `inputs_of`)."""
    width, known, share = maps.size // BLOCK, W > M, 1.0 / M
    for r in range(n):
        k = item(context, r) * record + (1 + M) * width
        distance = 0.0
        for j in range(M):
            u = item(x, j * BLOCK + r) * item(unit, j) + item(table, k + j)
            v[j * BLOCK + r] = u
            if known:
                surprise = item(maps, r * width + M + j)
                distance += surprise * (u - item(table, k + M + j))
                v[(M + j) * BLOCK + r] = surprise * item(table, k + 2 * M + j)
        distances[r] = distance * share + NEAR
    if known:
        take_logarithms(distances)
        for r in range(n):
            v[2 * M * BLOCK + r] = distances[r]


@simd_function
def _weigh(z: Any, effective: Any, x: Any) -> None:
    """Write Σ_m effective_m p_m of each row to x."""
    for r in range(BLOCK):
        x[r] = effective[0] * z[r]
    for m in range(1, len(effective)):
        p = z[m * BLOCK : (m + 1) * BLOCK]
        for r in range(BLOCK):
            x[r] += effective[m] * p[r]


@simd_kernel
def score_rows(
    begin: int, end: int, scores: Any, codes: Any, slots: Any, low: Any, per_unit: Any, table: Any,
    straight: Any, record: int, W: int, contexts: Any, unit: Any, knot: Any, knots_per_unit: Any,
    heads: Any, curved: Any, curve_ends: Any, curves: Any, pairs: Any, surface_ends: Any,
    surfaces: Any, p: Any, fused: Any, effective: Any, context: Any, x: Any, z: Any, distance: Any,
    v: Any, cell: Any, share: Any, row: Any, column: Any, part: Any, maps: Any, sums: Any,
) -> None:  # fmt: skip
    """Write the probabilities of some rows, or their sum by effective weights.

    The arguments are the fields of `Tables`, in order, between the rows and what is written; then
    those of `HeadRoom`.
    """
    M, width = len(unit), maps.size // BLOCK
    cells = table.size // (2 * M)
    for first in range(begin, end, BLOCK):
        n = BLOCK if first + BLOCK < end else end - first
        _number(codes, slots, first, n, context)
        _turn(scores, first, M, n, M, x)
        take_logits(x)
        for j in range(M):
            if not straight[j]:
                _bend(x, j, n, low[j], per_unit[j], cells, table, cell)
        _apply(context, n, record, M, contexts, x, maps)
        if len(curved) + len(pairs) > 0:
            _inputs(context, n, record, M, W, contexts, unit, x, distance, v, maps)
            inputs = 2 * M + 1 if W > M else M
            find_cells(inputs, v, knot, knots_per_unit, cell, share, row, column, part)
            add_bends(
                n, curved, curve_ends, curves, pairs, surface_ends, surfaces, cell, share, row,
                column, part, sums, maps,
            )  # fmt: skip
        _turn(maps, 0, width, n, M, z)
        take_sigmoids(z)
        if len(effective):
            _weigh(z, effective, x)
            for r in range(n):
                fused[first + r] = x[r]
        else:
            for m in range(M):
                for r in range(n):
                    put_item(p, (first + r) * M + heads[m], item(z, m * BLOCK + r))


@simd_kernel
def average_rows(
    begin: int, end: int, places: Any, of_row: Any, pair: Any, root: Any, points: Any, record: int,
    W: int, contexts: Any, unit: Any, knot: Any, knots_per_unit: Any, heads: Any, curved: Any,
    curve_ends: Any, curves: Any, pairs: Any, surface_ends: Any, surfaces: Any, means: Any,
    context: Any, x: Any, z: Any, distance: Any, v: Any, cell: Any, share: Any, row: Any,
    column: Any, part: Any, maps: Any, sums: Any,
) -> None:  # fmt: skip
    """Write the mean probabilities of completions of some rows: places + root·point, each point.

    Coordinates are given, and not scores; the rest is as `score_rows` has it.
    """
    K, M = points.shape
    width, rows = maps.size // BLOCK, BLOCK // K
    for first in range(begin, end, rows):
        n = (rows if first + rows < end else end - first) * K
        for r in range(n):
            i, k = first + r // K, r % K
            context[r] = of_row[i]
            for m in range(M):
                x[m * BLOCK + r] = places[i, m]
                for j in range(m + 1):
                    x[m * BLOCK + r] += root[pair[i], m, j] * points[k, j]
        _apply(context, n, record, M, contexts, x, maps)
        _inputs(context, n, record, M, W, contexts, unit, x, distance, v, maps)
        inputs = 2 * M + 1 if W > M else M
        find_cells(inputs, v, knot, knots_per_unit, cell, share, row, column, part)
        add_bends(
            n, curved, curve_ends, curves, pairs, surface_ends, surfaces, cell, share, row, column,
            part, sums, maps,
        )  # fmt: skip
        _turn(maps, 0, width, n, M, z)
        take_sigmoids(z)
        for i in range(first, first + n // K):
            for m in range(M):
                total = 0.0
                for r in range((i - first) * K, (i - first + 1) * K):
                    total += item(z, m * BLOCK + r)
                means[i, heads[m]] = total / K
