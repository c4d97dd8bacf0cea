"""What the loops of the residual's fit share: records, knots, and what a row touches.

A row touches one coefficient of a group of context values, slopes or pairs, two of a curve, coarse
or fine, four of a surface. So sums are scattered, not multiplied.
"""

__all__ = [
    "CURVE",
    "FINE",
    "PAIR",
    "SLOPE",
    "SURFACE",
    "TILE",
    "TOUCHED",
    "VALUE",
    "Affine",
    "Cells",
    "GroupTable",
    "RowTable",
    "fill",
    "find_cells",
    "touch",
]

from typing import Any, NamedTuple

import numpy as np

from harmonrank.model.scorer.elementary import take_logarithms
from harmonrank.model.terms.residual import CURVE_KNOTS, FINE_KNOTS, NEAR, SURFACE_KNOTS
from harmonrank.support.kernel import kernel, simd_function, simd_kernel

VALUE, CURVE, FINE, SLOPE, SURFACE, PAIR = range(6)

TILE = 128
"""Rows at a time, whose intermediate results stay in a near cache."""
TOUCHED = 4
"""Coefficients of a group that a row touches, at most."""


class RowTable(NamedTuple):
    """Rows as `ResidualRows` has them.

    Attributes:
        low, per_unit: (V,) first knot of each input, and one over the range of its knots.
        slots: Codes per context feature.
        inputs: (rows, V).
        contexts: (contexts, features) codes.
        context: (rows,) which of them a row has.
        heads: (rows, M) logits.
    """

    low: np.ndarray
    per_unit: np.ndarray
    slots: np.ndarray
    inputs: np.ndarray
    contexts: np.ndarray
    context: np.ndarray
    heads: np.ndarray


class GroupTable(NamedTuple):
    """Groups in the order of their kinds.

    Attributes:
        table: (groups, 4) kind, first and second input or feature, and the first coefficient.
        kinds: Where each kind begins in the table.
        curved, fine, joined: The inputs that some curve, fine curve or surface looks at.
    """

    table: np.ndarray
    kinds: np.ndarray
    curved: np.ndarray
    fine: np.ndarray
    joined: np.ndarray


class Cells(NamedTuple):
    """Between which knots the inputs of a tile of rows lie.

    Attributes:
        cell, share: (2V, TILE) the knot of a curve at or below the input, and the share of the next
            one; in the second half, those of fine curves.
        wide, part: (V, TILE) the same among the knots of surfaces.
    """

    cell: np.ndarray
    share: np.ndarray
    wide: np.ndarray
    part: np.ndarray

    @classmethod
    def room(cls, V: int, dtype: Any = np.float64) -> "Cells":
        """Return room for so many inputs."""
        both, one = (2 * V, TILE), (V, TILE)
        return cls(
            np.empty(both, np.int64), np.empty(both, dtype),
            np.empty(one, np.int64), np.empty(one, dtype),
        )  # fmt: skip


class Affine(NamedTuple):
    """What depends on the context, for some contexts (see `HeadSums.affine`)."""

    mean: np.ndarray
    surprise: np.ndarray
    intercept: np.ndarray
    slope: np.ndarray


@kernel
def fill(
    away: Any, given: Any, start: Any, number: Any, before: int, low: int, high: int, inputs: Any,
    heads: Any, context: Any,
) -> None:  # fmt: skip
    """Write inputs, logits of the linear heads and context of some runs (see `inputs_of`).

    What depends on the context is given from that of number `before` on. Rows of a run are
    neighbours in `away`, so loops over them are vector loops.
    """
    M = len(away)
    r, h, distance = np.empty(TILE), np.empty(TILE), np.ones(TILE)
    for run in range(low, high):
        c = number[run] - before
        surprise, slope = given.surprise[c], given.slope[c]
        for first in range(start[run], start[run + 1], TILE):
            end = min(first + TILE, start[run + 1])
            n = end - first
            distance[:n] = 0.0
            for j in range(M):
                # Surprise and head are linear in the same deviations.
                r[:n], h[:n] = 0.0, given.intercept[c, j]
                for k in range(M):
                    _add_products(surprise[j, k], slope[j, k], away[k, first:end], r, h)
                own, unit = away[j, first:end], 1.0 / np.sqrt(surprise[j, j])
                for i in range(n):
                    heads[first + i, j] = h[i]
                    # As r = C⁻¹ away, r·away adds up to the squared Mahalanobis distance.
                    distance[i] += r[i] * own[i]
                    inputs[first + i, j] = own[i] + given.mean[c, j]
                    inputs[first + i, M + j] = r[i] * unit
            _take_distances(distance, M)
            for i in range(n):
                inputs[first + i, 2 * M] = distance[i]
                context[first + i] = number[run]


@simd_kernel
def _add_products(s: float, b: float, x: Any, r: Any, h: Any) -> None:
    for i in range(x.size):
        r[i] += s * x[i]
        h[i] += b * x[i]


@simd_kernel
def _take_distances(distance: Any, M: int) -> None:
    for i in range(distance.size):
        distance[i] = distance[i] / M + NEAR
    take_logarithms(distance)


@simd_kernel
def find_cells(rows: Any, groups: Any, which: Any, cells: Any) -> None:
    """Look up the knots of a tile of rows, of the inputs that some group looks at."""
    V = rows.inputs.shape[1]
    _put(rows, which, groups.curved, CURVE_KNOTS, cells.cell, cells.share)
    _put(rows, which, groups.fine, FINE_KNOTS, cells.cell[V:], cells.share[V:])
    _put(rows, which, groups.joined, SURFACE_KNOTS, cells.wide, cells.part)


@simd_function
def _put(rows: Any, which: Any, inputs: Any, knots: int, cell: Any, share: Any) -> None:
    for i in inputs:
        for r in range(len(which)):
            # Beyond the ends the outermost knot counts alone: what was seldom seen ends there.
            away = (rows.inputs[which[r], i] - rows.low[i]) * rows.per_unit[i]
            place = min(max(away, 0.0), 1.0) * (knots - 1)
            cell[i, r] = min(int(place), knots - 2)
            share[i, r] = place - cell[i, r]


@simd_kernel
def touch(group: Any, rows: Any, which: Any, cells: Any, index: Any, number: Any) -> int:
    """Write the coefficients of a group that a tile of rows touches; return how many a row does.

    Args:
        group: Its row of the table.
        rows: The rows.
        which: Those of the tile.
        cells: Between which knots their inputs lie.
        index: (TOUCHED, TILE) is told the coefficients, counted from the group's first.
        number: (TOUCHED, TILE) is told what each is multiplied with.
    """
    kind, a, b, n = group[0], group[1], group[2], len(which)
    if kind == CURVE or kind == FINE:  # noqa: SIM109
        cell, share = cells.cell[b], cells.share[b]
        for r in range(n):
            index[0, r], number[0, r] = cell[r], 1.0 - share[r]
            index[1, r], number[1, r] = cell[r] + 1, share[r]
        return 2
    if kind == SURFACE:
        # Bilinear: a corner counts by the area of the rectangle that lies opposite.
        across, down, x, y = cells.wide[a], cells.wide[b], cells.part[a], cells.part[b]
        for r in range(n):
            corner = across[r] * SURFACE_KNOTS + down[r]
            index[0, r], number[0, r] = corner, (1.0 - x[r]) * (1.0 - y[r])
            index[1, r], number[1, r] = corner + 1, (1.0 - x[r]) * y[r]
            index[2, r], number[2, r] = corner + SURFACE_KNOTS, x[r] * (1.0 - y[r])
            index[3, r], number[3, r] = corner + SURFACE_KNOTS + 1, x[r] * y[r]
        return 4
    codes, context, inputs = rows.contexts, rows.context, rows.inputs
    if kind == SLOPE:  # The score itself is what the context's slope multiplies.
        for r in range(n):
            index[0, r], number[0, r] = codes[context[which[r]], b], inputs[which[r], a]
    elif kind == PAIR:
        for r in range(n):
            c = context[which[r]]
            index[0, r], number[0, r] = codes[c, a] * rows.slots[b] + codes[c, b], 1.0
    else:
        for r in range(n):
            index[0, r], number[0, r] = codes[context[which[r]], a], 1.0
    return 1
