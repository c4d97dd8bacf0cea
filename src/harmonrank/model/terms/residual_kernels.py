"""Loops of the residual's fit: rows touch few coefficients, so sums are scattered, not multiplied.

A row touches one coefficient of a group of context values, slopes or pairs, two of a curve, four of
a surface. A table of groups has a row for each: kind, first and second input or feature, size.
"""

__all__ = [
    "CURVE",
    "PAIR",
    "SLOPE",
    "SURFACE",
    "VALUE",
    "add_curvature",
    "fill",
    "inputs_in",
    "layout",
    "places",
]

from typing import Any

import numpy as np

from harmonrank.model.scorer.elementary import take_logarithms
from harmonrank.model.terms.residual import CURVE_KNOTS, NEAR, SURFACE_KNOTS
from harmonrank.support.kernel import inline_kernel, kernel, lane_kernel

VALUE, CURVE, SLOPE, SURFACE, PAIR = range(5)

_TILE = 128  # Rows.


@kernel
def fill(
    away: Any, mean: Any, surprise: Any, intercept: Any, slope: Any, start: Any, number: Any,
    before: int, low: int, high: int, inputs: Any, heads: Any, context: Any,
) -> None:  # fmt: skip
    """Write inputs, logits of the linear heads and context of some runs (see `inputs_of`).

    What depends on the context is given from that of number `before` on. Rows of a run are
    neighbours in `away`, so loops over them are vector loops.
    """
    M = len(away)
    r, h, distance = np.empty(_TILE), np.empty(_TILE), np.ones(_TILE)
    for run in range(low, high):
        c = number[run] - before
        for first in range(start[run], start[run + 1], _TILE):
            end = min(first + _TILE, start[run + 1])
            n = end - first
            distance[:n] = 0.0
            for j in range(M):
                # Surprise and head are linear in the same deviations.
                r[:n], h[:n] = 0.0, intercept[c, j]
                for k in range(M):
                    _add_products(surprise[c, j, k], slope[c, j, k], away[k, first:end], r, h)
                own, unit = away[j, first:end], 1.0 / np.sqrt(surprise[c, j, j])
                for i in range(n):
                    heads[first + i, j] = h[i]
                    # As r = C⁻¹ away, r·away adds up to the squared Mahalanobis distance.
                    distance[i] += r[i] * own[i]
                    inputs[first + i, j] = own[i] + mean[c, j]
                    inputs[first + i, M + j] = r[i] * unit
            _take_distances(distance, M)
            for i in range(n):
                inputs[first + i, 2 * M] = distance[i]
                context[first + i] = number[run]


@lane_kernel
def _add_products(s: float, b: float, x: Any, r: Any, h: Any) -> None:
    for i in range(x.size):
        r[i] += s * x[i]
        h[i] += b * x[i]


@lane_kernel
def _take_distances(distance: Any, M: int) -> None:
    for i in range(distance.size):
        distance[i] = distance[i] / M + NEAR
    take_logarithms(distance)


@kernel
def layout(table: Any, start: int) -> Any:
    """Return where each kind begins in the table, and each group's coefficients in theta."""
    kinds, starts = np.zeros(PAIR + 1, np.int64), np.empty(len(table), np.int64)
    for t in range(len(table)):
        starts[t] = start
        start += table[t, 3]
        # Groups are in the order of their kinds: each moves the begin of all later kinds.
        for kind in range(table[t, 0] + 1, PAIR + 1):
            kinds[kind] += 1
    return kinds, starts


@kernel
def inputs_in(table: Any, begin: int, end: int, V: int) -> Any:
    """Return which inputs some curves or surfaces look at."""
    there = np.zeros(V, np.bool_)
    for t in range(begin, end):
        there[table[t, 1]] = there[table[t, 2]] = True
    return np.flatnonzero(there)


@inline_kernel
def places(v: Any, low: Any, per_unit: Any, knots: int, cell: Any, share: Any) -> None:
    """Write the knot at or below each input, and the share of the next one."""
    for i in range(len(v)):
        # Beyond the ends the outermost knot counts alone: what was seldom seen is not continued.
        place = min(max((v[i] - low[i]) * per_unit[i], 0.0), 1.0) * (knots - 1)
        cell[i] = min(int(place), knots - 2)
        share[i] = place - cell[i]


@inline_kernel
def _places_of(
    which: Any, v: Any, low: Any, per_unit: Any, knots: int, cell: Any, share: Any
) -> None:
    """Write the same of some inputs."""
    for i in which:
        place = min(max((v[i] - low[i]) * per_unit[i], 0.0), 1.0) * (knots - 1)
        cell[i] = min(int(place), knots - 2)
        share[i] = place - cell[i]


@inline_kernel
def _touch(
    kind: int, a: int, b: int, v: Any, code: Any, slots: Any, cell: Any, share: Any, wide: Any,
    part: Any, index: Any, number: Any, n: int, start: int,
) -> int:  # fmt: skip
    """Write the coefficients of one group that a row touches, from place n on; return the next."""
    if kind == CURVE:
        index[n], number[n] = start + cell[a], 1.0 - share[a]
        index[n + 1], number[n + 1] = start + cell[a] + 1, share[a]
        return n + 2
    if kind == SURFACE:
        # Bilinear: a corner counts by the area of the rectangle that lies opposite.
        corner = start + wide[a] * SURFACE_KNOTS + wide[b]
        index[n], number[n] = corner, (1.0 - part[a]) * (1.0 - part[b])
        index[n + 1], number[n + 1] = corner + 1, (1.0 - part[a]) * part[b]
        index[n + 2], number[n + 2] = corner + SURFACE_KNOTS, part[a] * (1.0 - part[b])
        index[n + 3], number[n + 3] = corner + SURFACE_KNOTS + 1, part[a] * part[b]
        return n + 4
    if kind == VALUE:
        index[n], number[n] = start + code[a], 1.0
    elif kind == SLOPE:  # The score itself is what the context's slope multiplies.
        index[n], number[n] = start + code[b], v[a]
    else:
        index[n], number[n] = start + code[a] * slots[b] + code[b], 1.0
    return n + 1


@kernel
def _row(
    v: Any, code: Any, head: float, M: int, slots: Any, low: Any, per_unit: Any, table: Any,
    curved: Any, joined: Any, cell: Any, share: Any, wide: Any, part: Any, index: Any, number: Any,
) -> int:  # fmt: skip
    """Write all coefficients that a row touches and their numbers; return how many."""
    index[0], number[0], index[1], number[1] = 0, 1.0, 1, head
    for j in range(M):
        index[2 + j], number[2 + j] = 2 + j, v[j]
    _places_of(curved, v, low, per_unit, CURVE_KNOTS, cell, share)
    _places_of(joined, v, low, per_unit, SURFACE_KNOTS, wide, part)
    n, start = 2 + M, 2 + M
    for t in range(len(table)):
        n = _touch(
            table[t, 0], table[t, 1], table[t, 2], v, code, slots, cell, share, wide, part, index,
            number, n, start,
        )  # fmt: skip
        start += table[t, 3]
    return n


@kernel
def add_curvature(
    m: int, rows: Any, table: Any, curvature: Any, low: Any, per_unit: Any, slots: Any,
    inputs: Any, contexts: Any, context: Any, heads: Any,
) -> None:  # fmt: skip
    """Add the lower half of Σ x xᵀ over some rows."""
    M, V = heads.shape[1], inputs.shape[1]
    cell, share = np.empty(V, np.int64), np.empty(V, np.float32)
    wide, part = np.empty(V, np.int64), np.empty(V, np.float32)
    kinds, _ = layout(table, 2 + M)
    curved = inputs_in(table, kinds[CURVE], kinds[SLOPE], V)
    joined = inputs_in(table, kinds[SURFACE], kinds[PAIR], V)
    most = 2 + M + 4 * len(table)
    index, number = np.empty(most, np.int64), np.empty(most, np.float32)
    for i in rows:
        n = _row(
            inputs[i], contexts[context[i]], heads[i, m], M, slots, low, per_unit, table, curved,
            joined, cell, share, wide, part, index, number,
        )  # fmt: skip
        for k in range(n):
            row, x = curvature[index[k]], number[k]
            # Groups come in ascending order, and so do the corners of a surface.
            for other in range(k + 1):
                row[index[other]] += x * number[other]
