"""Sixteen rows on their way to the network: where in the tables they are, and loading them.

A number has sixteen neighbouring places, one for each row, so that all sixteen go through every
instruction at once (`support.simd`). A row's result does not depend on the other fifteen.
"""

__all__ = ["NetworkTables", "Room", "aligned", "load_rows", "place_codes", "place_scores", "turn"]

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.kernel import lane_function
from harmonrank.support.simd import ROWS, SINGLES, item, lanes, put_lanes, row_lanes
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

_LINE = 64  # Bytes of a cache line.

_ZERO, _ONE = np.float32(0), np.float32(1)


class NetworkTables(NamedTuple):
    """What a kernel is told of a network; see `Tables`."""

    first: Array
    cells: Array  # flat
    contexts: Array  # flat
    M: int  # objectives
    F: int  # fields of a cell
    d: int  # width of a token
    W: int  # numbers of a context
    attend: bool
    ask: bool
    smooth: bool
    bias: Any


class Room(NamedTuple):
    """Memory for sixteen rows, flat; every thread needs its own."""

    place: Array  # (objectives + features): the rows of the tables
    share: Array  # (objectives): of the table row after it
    cell: Array  # (objectives, fields): x, y, z of each score, then l, or q, κ and t
    u: Array  # (width): what the context asks for
    A: Array  # (objectives, objectives): attention, times its sum
    own: Array  # (7, objectives): h, c, o, p, g, one over the sum of A, and ∂s/∂h
    s: Array  # (2): the fused score, and its relation-aware part
    turned: Array  # room to turn eight fields of sixteen rows

    @classmethod
    def of(cls, M: int, features: int, fields: int, width: int) -> "Room":
        """Return room for a network with tables of so many columns."""

        def new(n: int) -> Array:
            # Eight fields are written at a time, some perhaps beyond the last.
            return aligned((n + SINGLES) * ROWS)

        place = aligned((M + features + SINGLES) * ROWS, np.int32)
        cell, u, A = new(M * fields), new(width), new(M * M)
        return cls(place, new(M), cell, u, A, new(7 * M), new(2), new(SINGLES))


def aligned(size: int, dtype: Any = np.float32) -> Array:
    """Return zeros from the beginning of a cache line on.

    Lanes across two lines take twice the time, and far more when they were written just before.
    """
    whole = np.zeros(size + _LINE, dtype)
    skipped = -whole.ctypes.data % _LINE // whole.itemsize
    return whole[skipped : skipped + size]


@lane_function
def turn(rows: Array, first: int, step: int, fields: Array, to: int) -> None:
    """Write eight fields of sixteen rows, of four bytes each, the row being the last axis."""
    for half in range(0, ROWS, SINGLES):
        transpose(rows, first + half * step, step, fields, to + half, ROWS)


@lane_function
def load_rows(network: Any, room: Any) -> None:
    """Fetch the table rows; u is the constant row plus one row per context feature.

    Eight fields are loaded at a time. Those after the last belong to the next objective, whose own
    are written later, or to nobody.
    """
    first, cells, contexts = network.first, network.cells, network.contexts
    M, F, W, smooth = network.M, network.F, network.W, network.smooth
    place, share, cell, u, turned = room.place, room.share, room.cell, room.u, room.turned
    for m in range(M):
        for f in range(0, F, SINGLES):
            for r in range(ROWS):
                k = item(place, m * ROWS + r) * F + f
                row = lanes(cells, k)
                if smooth:
                    row = row + item(share, m * ROWS + r) * (lanes(cells, k + F) - row)
                put_lanes(turned, r * SINGLES, row)
            turn(turned, 0, SINGLES, cell, (m * F + f) * ROWS)
    for f in range(0, W, SINGLES):
        for r in range(ROWS):
            row = lanes(contexts, f)
            for m in range(M, len(first)):
                row = row + lanes(contexts, item(place, m * ROWS + r) * W + f)
            put_lanes(turned, r * SINGLES, row)
        turn(turned, 0, SINGLES, u, f * ROWS)


@lane_function
def place_codes(start: int, rows: Any, network: Any, room: Any) -> None:
    """Write the places of coded rows, and the shares of the table rows after them.

    Beyond the last row that one is repeated: whoever counts the rows leaves it out.
    """
    _, index, codes, shares = rows
    first, M, place, share, turned = network.first, network.M, room.place, room.share, room.turned
    columns, last = len(first), len(index) - 1
    for c in range(0, columns, SINGLES):
        for r in range(ROWS):
            i = item(index, start + r if start + r < last else last)
            put_lanes(turned, r * SINGLES, widened(lanes(codes, i * columns + c)))
        turn(turned, 0, SINGLES, place, c * ROWS)
    for m in range(columns):
        put_lanes(place, m * ROWS, row_lanes(place, m * ROWS) + item(first, m))
    for c in range(0, M if network.smooth else 0, SINGLES):
        for r in range(ROWS):
            i = item(index, start + r if start + r < last else last)
            put_lanes(turned, r * SINGLES, lanes(shares, i * M + c))
        turn(turned, 0, SINGLES, share, c * ROWS)


@lane_function
def place_scores(
    start: int, rows: Any, knotted: Any, network: Any, room: Any, strange: Array
) -> None:
    """Write the places of raw scores and context codes; count codes that have none as strange.

    The context may have more columns than the network looks at.
    """
    (scores, context, columns), (sizes, knots, inner) = rows, knotted
    first, M, place, share = network.first, network.M, room.place, room.share
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
        _search(m, M, knots, inner, network.smooth, np.int32(item(first, m)), place, share)


@lane_function
def _search(
    m: int, M: int, knots: Array, inner: Array, smooth: bool, first: Any, place: Array, share: Array
) -> None:
    """Count the knots that are not above each score, and replace it by its share of the next row.

    There is no share without interpolation. The inner knots are filled up with ∞ to a power of two.
    """
    s, below = row_lanes(share, m * ROWS), of_all(np.int32(0))
    K, width = len(knots) // M, len(inner) // M
    half = width // 2
    while half > 0:
        below = below + counted(fetched(inner, m * width + half - 1, below), s) * half
        half //= 2
    put_lanes(place, m * ROWS, below + first)
    if smooth:
        low, high = fetched(knots, m * K, below), fetched(knots, m * K + 1, below)
        part = larger((s - low) / (high - low), of_all(_ZERO))
        put_lanes(share, m * ROWS, smaller(part, of_all(_ONE)))
