"""Loops of the residual's first look, which asks about every group that a head may have.

A few rows at a time are taken through all groups, so that the sums of a group stay in a near cache:
of twenty objectives there are hundreds of groups, whose sums together take megabytes.
"""

__all__ = ["BAND", "add_blocks", "add_look"]

from typing import Any

import numpy as np

from harmonrank.model.terms.residual import CURVE_KNOTS, SURFACE_KNOTS
from harmonrank.model.terms.residual_gradient_kernels import TILE, weigh_labels
from harmonrank.model.terms.residual_kernels import CURVE, SLOPE, SURFACE, VALUE, layout, places
from harmonrank.support.kernel import inline_kernel, kernel, lane_function, lane_kernel

BAND = (0, 1, SURFACE_KNOTS - 1, SURFACE_KNOTS, SURFACE_KNOTS + 1)
"""How far apart the coefficients of a surface are that some row touches together."""


@kernel
def add_look(
    begin: int, end: int, labels: Any, weight: Any, period: Any, table: Any, gradient: Any,
    low: Any, per_unit: Any, slots: Any, inputs: Any, contexts: Any, context: Any,
    heads: Any,
) -> None:  # fmt: skip
    """Add gradients of all heads at their linear logits, of each period.

    Heads are side by side, as all touch the same coefficients of a row.
    """
    M, V = heads.shape[1], inputs.shape[1]
    _, starts = layout(table, 2 + M)
    cell, share = np.empty((TILE, V), np.int64), np.empty((TILE, V))
    corner, part = np.empty((TILE, V), np.int64), np.empty((TILE, V))
    g, offset = np.zeros((TILE, M)), np.empty(TILE, np.int64)
    z, own, p, sure = np.zeros(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    flat, flat_g = gradient.reshape(-1), g.reshape(-1)
    for first in range(begin, end, TILE):
        n = min(TILE, end - first)
        for r in range(n):
            offset[r] = gradient.shape[1] * int(period[first + r])
            v = inputs[first + r]
            places(v, low, per_unit, CURVE_KNOTS, cell[r], share[r])
            places(v, low, per_unit, SURFACE_KNOTS, corner[r], part[r])
        for m in range(M):
            for r in range(n):
                z[r] = heads[first + r, m]
            y, w = labels[m, first : first + n], weight[min(m, len(weight) - 1), first : first + n]
            weigh_labels(n, z, y, w, p, sure, own)
            for r in range(n):
                total = gradient[int(period[first + r])]
                g[r, m] = own[r]
                total[0, m] += own[r]
                total[1, m] += own[r] * z[r]
        rows, codes = inputs[first : first + n], contexts[context[first : first + n]]
        for j in range(M):
            _add_numbers(flat, flat_g, offset, 2 + j, rows[:, j], M)
        for t in range(len(table)):
            kind, a, b, start = table[t, 0], table[t, 1], table[t, 2], starts[t]
            if kind == SURFACE:
                _add_surface(
                    flat, flat_g, offset[:n], start, corner[:, a], corner[:, b], part[:, a],
                    part[:, b], M,
                )  # fmt: skip
            elif kind == CURVE:
                _add_curve(flat, flat_g, offset[:n], start, cell[:, a], share[:, a], M)
            else:
                _add_codes(flat, flat_g, offset[:n], start, kind, a, b, codes, slots, rows, M)


@lane_function
def _add_heads(flat: Any, to: Any, g: Any, at: Any, number: float, M: int) -> None:
    """Add what one coefficient of a row adds to the gradient of every head."""
    # Of an unsigned place numba does not ask whether it counts from the end.
    to, at = np.uint64(to), np.uint64(at)
    for k in range(np.uint64(M)):
        flat[to + k] += number * g[at + k]


@lane_kernel
def _add_numbers(flat: Any, g: Any, offset: Any, start: int, numbers: Any, M: int) -> None:
    for r in range(len(numbers)):
        _add_heads(flat, (offset[r] + start) * M, g, r * M, np.float64(numbers[r]), M)


@lane_kernel
def _add_surface(
    flat: Any, g: Any, offset: Any, start: int, row: Any, column: Any, part: Any, other: Any,
    M: int,
) -> None:  # fmt: skip
    for r in range(len(offset)):
        k = (offset[r] + start + row[r] * SURFACE_KNOTS + column[r]) * M
        u, v = part[r], other[r]
        _add_heads(flat, k, g, r * M, (1.0 - u) * (1.0 - v), M)
        _add_heads(flat, k + M, g, r * M, (1.0 - u) * v, M)
        _add_heads(flat, k + SURFACE_KNOTS * M, g, r * M, u * (1.0 - v), M)
        _add_heads(flat, k + (SURFACE_KNOTS + 1) * M, g, r * M, u * v, M)


@lane_kernel
def _add_curve(flat: Any, g: Any, offset: Any, start: int, cell: Any, share: Any, M: int) -> None:
    for r in range(len(offset)):
        k = (offset[r] + start + cell[r]) * M
        _add_heads(flat, k, g, r * M, 1.0 - share[r], M)
        _add_heads(flat, k + M, g, r * M, share[r], M)


@lane_kernel
def _add_codes(
    flat: Any, g: Any, offset: Any, start: int, kind: int, a: int, b: int, codes: Any, slots: Any,
    inputs: Any, M: int,
) -> None:  # fmt: skip
    """Add a group of which a row touches one coefficient: values, slopes or pairs."""
    for r in range(len(offset)):
        number, place = 1.0, codes[r, a] * slots[b] + codes[r, b]
        if kind == VALUE:
            place = codes[r, a]
        elif kind == SLOPE:
            number, place = np.float64(inputs[r, a]), codes[r, b]
        _add_heads(flat, (offset[r] + start + place) * M, g, r * M, number, M)


@kernel
def add_blocks(
    rows: Any, table: Any, corners: Any, curvature: Any, low: Any, per_unit: Any, slots: Any,
    inputs: Any, contexts: Any, context: Any,
) -> None:  # fmt: skip
    """Add the lower offset of each group's own block of curvature.

    A diagonal is kept as one, and of a surface the few diagonals that are not 0, `BAND`.
    """
    V = inputs.shape[1]
    cell, share = np.empty((TILE, V), np.int64), np.empty((TILE, V), np.float32)
    wide, part = np.empty((TILE, V), np.int64), np.empty((TILE, V), np.float32)
    for first in range(0, len(rows), TILE):
        some = rows[first : first + TILE]
        for r in range(len(some)):
            places(inputs[some[r]], low, per_unit, CURVE_KNOTS, cell[r], share[r])
            places(inputs[some[r]], low, per_unit, SURFACE_KNOTS, wide[r], part[r])
        for t in range(len(table)):
            kind, a, b = table[t, 0], table[t, 1], table[t, 2]
            block = curvature[corners[t] : corners[t + 1]]
            if kind == SURFACE:
                for r in range(len(some)):
                    _add_corners(block, wide[r, a], wide[r, b], part[r, a], part[r, b])
            elif kind == CURVE:
                for r in range(len(some)):
                    k, x = cell[r, a] * (CURVE_KNOTS + 1), share[r, a]
                    y = np.float32(1.0 - x)
                    block[k] += y * y
                    block[k + CURVE_KNOTS] += x * y
                    block[k + CURVE_KNOTS + 1] += x * x
            elif kind == SLOPE:
                for r in range(len(some)):
                    x = inputs[some[r], a]
                    block[contexts[context[some[r]], b]] += x * x
            else:
                for r in range(len(some)):
                    code = contexts[context[some[r]]]
                    block[code[a] if kind == VALUE else code[a] * slots[b] + code[b]] += 1.0


@inline_kernel
def _add_corners(block: Any, row: int, column: int, x: Any, y: Any) -> None:
    """Add the lower offset of the products of a row's four corners, in the columns of `BAND`."""
    corner = row * SURFACE_KNOTS + column
    near, beside = np.float32((1.0 - x) * (1.0 - y)), np.float32((1.0 - x) * y)
    above, beyond = np.float32(x * (1.0 - y)), np.float32(x * y)
    width = len(BAND)
    k = corner * width
    block[k] += near * near
    k += width
    block[k + 1] += beside * near
    block[k] += beside * beside
    k += (SURFACE_KNOTS - 1) * width
    block[k + 3] += above * near
    block[k + 2] += above * beside
    block[k] += above * above
    k += width
    block[k + 4] += beyond * near
    block[k + 3] += beyond * beside
    block[k + 1] += beyond * above
    block[k] += beyond * beyond
