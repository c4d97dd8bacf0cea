"""The kernels that score with heads: from scores to probabilities, a block of rows at a time.

Each stage is a loop over the rows of a block, whose numbers stay in the nearest cache. Where every
number is treated alike the row is the last axis, so that LLVM takes several rows at once; where a
row looks its heads up in a table, several heads are taken at once (`support.simd`). A row's
numbers never depend on the other rows of its block, down to the last bit.
"""

__all__ = ["average_rows", "score_rows"]

from typing import Any

import numpy as np

from harmonrank.model.scorer.curve_kernels import add_curves_and_surfaces, find_cells
from harmonrank.model.scorer.curves import Curves
from harmonrank.model.scorer.elementary import take_logarithms, take_logits, take_sigmoids
from harmonrank.model.scorer.head_room import BLOCK, HeadRoom
from harmonrank.model.scorer.heads_tables import ContextRecords, CoordinateCells
from harmonrank.model.terms.residual import NEAR
from harmonrank.support.kernel import record_kernel, simd_function
from harmonrank.support.simd import SINGLES, double_simd, item, put_item, put_simd


@simd_function
def _number(codes: Any, slots: Any, first: int, n: int, context: Any) -> None:
    """Write the number of each row's context among all contexts; rows may share one."""
    features = len(slots)
    step = features if codes.size > features else 0
    for r in range(n):
        context[r] = 0
    for f in range(features):
        for r in range(n):
            code = item(codes, (first + r) * step + f)
            context[r] = context[r] * slots[f] + code


@simd_function
def _turn(rows: Any, first: int, width: int, n: int, M: int, columns: Any) -> None:
    """Write the first M numbers of each row as columns."""
    for m in range(M):
        column = columns[m * BLOCK : (m + 1) * BLOCK]
        for r in range(n):
            column[r] = item(rows, (first + r) * width + m)


@simd_function
def _look_up(n: int, coordinates: Any, room: Any) -> None:
    """Replace logits by coordinates: look their cells up and add the share of a step."""
    low, per_unit, table = coordinates.low, coordinates.per_unit, coordinates.table
    straight, x, cell = coordinates.straight, room.x, room.cell
    cells = table.size // (2 * len(low))
    for j in range(len(low)):
        if not straight[j]:
            own = x[j * BLOCK : (j + 1) * BLOCK]
            for r in range(BLOCK):
                # The first cell of the table is what lies below the grid, the last what is above.
                way = (own[r] - low[j]) * per_unit[j] + 1.0
                bounded = way if way > 0.0 else 0.0
                cell[r] = np.int32(bounded if bounded < cells - 1.0 else cells - 1.0)
                own[r] = way - cell[r]
            for r in range(n):
                k = 2 * (cells * j + cell[r])
                own[r] = item(table, k) + own[r] * item(table, k + 1)


@simd_function
def _apply(n: int, contexts: Any, room: Any) -> None:
    """Write the numbers of each row that are linear in its coordinates, given its context."""
    context, x, maps = room.context, room.x, room.maps
    table, record, M = contexts.numbers, contexts.record, len(contexts.unit)
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
def _inputs(n: int, contexts: Any, room: Any) -> None:
    """Write u, and r and d where surprises are known (see `inputs_of`)."""
    context, x, distances, v, maps = room.context, room.x, room.distance, room.v, room.maps
    table, unit, M = contexts.numbers, contexts.unit, len(contexts.unit)
    width, known, share = maps.size // BLOCK, contexts.columns > M, 1.0 / M
    for r in range(n):
        k = item(context, r) * contexts.record + (1 + M) * width
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
def _add_residual(n: int, contexts: Any, curves: Any, room: Any) -> None:
    """Add curves and surfaces to the logits of the linear map."""
    M = len(contexts.unit)
    _inputs(n, contexts, room)
    find_cells(2 * M + 1 if contexts.columns > M else M, curves, room)
    add_curves_and_surfaces(n, curves, room)


@simd_function
def _weigh(z: Any, effective: Any, x: Any) -> None:
    """Write Σ_m effective_m p_m of each row to x."""
    for r in range(BLOCK):
        x[r] = effective[0] * z[r]
    for m in range(1, len(effective)):
        p = z[m * BLOCK : (m + 1) * BLOCK]
        for r in range(BLOCK):
            x[r] += effective[m] * p[r]


@record_kernel
def score_rows(
    begin: int, end: int, rows: Any, coordinates: Any, contexts: Any, curves: Any, out: Any,
    room: Any,
) -> None:  # fmt: skip
    """Write the probabilities of some rows, or their sum by effective weights.

    Records are plain tuples here, whose types numba knows at once.

    Args:
        begin: The first row.
        end: After the last one.
        rows: Scores and codes, flat, and how many codes each feature has; codes of one row are
            those of all.
        coordinates: The fields of `CoordinateCells`.
        contexts: The fields of `ContextRecords`.
        curves: The fields of `Curves`.
        out: Probabilities, flat, fused scores, and effective weights; one of the first is filled.
        room: The fields of `HeadRoom`.
    """
    (scores, codes, slots), (p, fused, effective) = rows, out
    coordinates, contexts = CoordinateCells(*coordinates), ContextRecords(*contexts)
    curves, room = Curves(*curves), HeadRoom(*room)
    context, x, z, maps, heads = room.context, room.x, room.z, room.maps, curves.heads
    M, curved = len(contexts.unit), len(curves.curved) + len(curves.pairs) > 0
    for first in range(begin, end, BLOCK):
        n = BLOCK if first + BLOCK < end else end - first
        _number(codes, slots, first, n, context)
        _turn(scores, first, M, n, M, x)
        take_logits(x)
        _look_up(n, coordinates, room)
        _apply(n, contexts, room)
        if curved:
            _add_residual(n, contexts, curves, room)
        _turn(maps, 0, maps.size // BLOCK, n, M, z)
        take_sigmoids(z)
        if len(effective):
            _weigh(z, effective, x)
            for r in range(n):
                fused[first + r] = x[r]
        else:
            for m in range(M):
                for r in range(n):
                    put_item(p, (first + r) * M + heads[m], item(z, m * BLOCK + r))


@record_kernel
def average_rows(
    begin: int, end: int, completed: Any, contexts: Any, curves: Any, means: Any, room: Any
) -> None:
    """Write the mean probabilities of completions of rows: coordinates + root·point, each point.

    Coordinates are given, and not scores; the rest is as `score_rows` has it.

    Args:
        begin: The first row.
        end: After the last one.
        completed: Places of the rows, the context and the pair of each, the roots of all pairs,
            and the points.
        contexts: The fields of `ContextRecords`.
        curves: The fields of `Curves`.
        means: (rows, M), filled.
        room: The fields of `HeadRoom`.
    """
    coordinates, of_row, pair, root, points = completed
    contexts, curves, room = ContextRecords(*contexts), Curves(*curves), HeadRoom(*room)
    context, x, z, maps, heads = room.context, room.x, room.z, room.maps, curves.heads
    (K, M), rows = points.shape, BLOCK // points.shape[0]
    for first in range(begin, end, rows):
        n = (rows if first + rows < end else end - first) * K
        for r in range(n):
            i, k = first + r // K, r % K
            context[r] = of_row[i]
            for m in range(M):
                x[m * BLOCK + r] = coordinates[i, m]
                for j in range(m + 1):
                    x[m * BLOCK + r] += root[pair[i], m, j] * points[k, j]
        _apply(n, contexts, room)
        _add_residual(n, contexts, curves, room)
        _turn(maps, 0, maps.size // BLOCK, n, M, z)
        take_sigmoids(z)
        for i in range(first, first + n // K):
            for m in range(M):
                total = 0.0
                for r in range((i - first) * K, (i - first + 1) * K):
                    total += item(z, m * BLOCK + r)
                means[i, heads[m]] = total / K
