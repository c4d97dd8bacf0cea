"""Sixteen rows at a time: their places in the tables, and loading them.

Each number is stored for all sixteen rows side by side, so that one instruction computes it for all
of them (`support.simd`). The result of a row does not depend on the other fifteen.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonrank.model.scorer.head_room import aligned
from harmonrank.support.kernel import simd_function
from harmonrank.support.simd import ROWS, SINGLES, item, put_simd, row_simd, simd
from harmonrank.support.simd_maths import (
    counted,
    fetched,
    larger,
    of_all,
    smaller,
    transpose,
    widened,
)

Array = NDArray[Any]

_ZERO, _ONE = np.float32(0), np.float32(1)


class Room(NamedTuple):
    """Memory for sixteen rows, flat; every thread needs its own."""

    place: Array  # (objectives + features): the rows of the tables
    share: Array  # (objectives): of the table row after it
    cell: Array  # (objectives, fields): x, y, z of each score, then l, or q, κ and t
    u: Array  # (width): the query of the context
    A: Array  # (objectives, objectives): attention, times its sum
    own: Array  # (7, objectives): h, c, o, p, g, one over the sum of A, and ∂s/∂h
    s: Array  # (2): the fused score, and its relation-aware part
    turned: Array  # room to transpose eight fields of sixteen rows

    @classmethod
    def of(cls, M: int, features: int, fields: int, width: int) -> "Room":
        """Return room for a network with tables of so many columns."""

        def new(n: int) -> Array:
            # Eight fields are written at a time, some perhaps beyond the last.
            return aligned((n + SINGLES) * ROWS, np.float32)

        place = aligned((M + features + SINGLES) * ROWS, np.int32)
        cell, u, A = new(M * fields), new(width), new(M * M)
        return cls(place, new(M), cell, u, A, new(7 * M), new(2), new(SINGLES))


@simd_function
def turn(rows: Array, first: int, step: int, fields: Array, to: int) -> None:
    """Write eight fields of sixteen rows, of four bytes each, the row being the last axis."""
    for half in range(0, ROWS, SINGLES):
        transpose(rows, first + half * step, step, fields, to + half, ROWS)


@simd_function
def load_rows(
    place: Array, share: Array, cells: Array, contexts: Array, M: int, features: int, F: int,
    W: int, smooth: bool, cell: Array, u: Array, turned: Array,
) -> None:  # fmt: skip
    """Fetch the table rows; u is the constant row plus one row per context feature.

    Eight fields are loaded at a time. Those after the last belong to the next objective, whose own
    are written later, or to nobody.
    """
    for m in range(M):
        for f in range(0, F, SINGLES):
            for r in range(ROWS):
                k = item(place, m * ROWS + r) * F + f
                row = simd(cells, k)
                if smooth:
                    row = row + item(share, m * ROWS + r) * (simd(cells, k + F) - row)
                put_simd(turned, r * SINGLES, row)
            turn(turned, 0, SINGLES, cell, (m * F + f) * ROWS)
    for f in range(0, W, SINGLES):
        for r in range(ROWS):
            row = simd(contexts, f)
            for m in range(M, M + features):
                row = row + simd(contexts, item(place, m * ROWS + r) * W + f)
            put_simd(turned, r * SINGLES, row)
        turn(turned, 0, SINGLES, u, f * ROWS)


@simd_function
def place_codes(
    codes: Array, shares: Array, index: Array, start: int, M: int, first: Array, smooth: bool,
    place: Array, share: Array, turned: Array,
) -> None:  # fmt: skip
    """Write the places of coded rows, and the shares of the table rows after them.

    The last row is repeated to fill up sixteen; the copies are ignored.
    """
    columns, last = len(first), len(index) - 1
    for c in range(0, columns, SINGLES):
        for r in range(ROWS):
            i = item(index, start + r if start + r < last else last)
            put_simd(turned, r * SINGLES, widened(simd(codes, i * columns + c)))
        turn(turned, 0, SINGLES, place, c * ROWS)
    for m in range(columns):
        put_simd(place, m * ROWS, row_simd(place, m * ROWS) + item(first, m))
    for c in range(0, M if smooth else 0, SINGLES):
        for r in range(ROWS):
            i = item(index, start + r if start + r < last else last)
            put_simd(turned, r * SINGLES, simd(shares, i * M + c))
        turn(turned, 0, SINGLES, share, c * ROWS)


@simd_function
def place_scores(
    start: int, rows: Any, knotted: Any, M: int, first: Array, smooth: bool, place: Array,
    share: Array, strange: Array,
) -> None:  # fmt: skip
    """Write the places of raw scores and context codes, and mark unknown codes as strange.

    The context may have more columns than the network uses.
    """
    (scores, context, columns), (sizes, knots, inner) = rows, knotted
    for m in range(0, len(first) - M, SINGLES):
        turn(context, start * columns + m, columns, place, (M + m) * ROWS)
    for m in range(M, len(first)):
        codes = place[m * ROWS : (m + 1) * ROWS]
        for r in range(ROWS):
            known = min(max(codes[r], 0), item(sizes, m) - 1)
            strange[r] |= codes[r] != known
            codes[r] = known + item(first, m)
    for m in range(0, M, SINGLES):
        turn(scores, start * M + m, M, share, m * ROWS)
    for m in range(M):
        _search(m, M, knots, inner, smooth, np.int32(item(first, m)), place, share)


@simd_function
def _search(
    m: int, M: int, knots: Array, inner: Array, smooth: bool, first: Any, place: Array, share: Array
) -> None:
    """Count the knots that are not above each score, and replace it by its share of the next row.

    There is no share without interpolation. The inner knots are filled up with ∞ to a power of two.
    """
    s, below = row_simd(share, m * ROWS), of_all(np.int32(0))
    K, width = len(knots) // M, len(inner) // M
    half = width // 2
    while half > 0:
        below = below + counted(fetched(inner, m * width + half - 1, below), s) * half
        half //= 2
    put_simd(place, m * ROWS, below + first)
    if smooth:
        low, high = fetched(knots, m * K, below), fetched(knots, m * K + 1, below)
        part = larger((s - low) / (high - low), of_all(_ZERO))
        put_simd(share, m * ROWS, smaller(part, of_all(_ONE)))
