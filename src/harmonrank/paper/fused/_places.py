"""Places: where the rows of the tables are that sixteen rows of the log need."""

__all__ = ["place_codes", "place_scores"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.fused._room import turn
from harmonrank.support.kernel import lane_function
from harmonrank.support.simd import ROWS, SINGLES, item, lanes, put_lanes, row_lanes
from harmonrank.support.simd_maths import counted, fetched, larger, of_all, smaller, widened

Array = NDArray[Any]

_ZERO, _ONE = np.float32(0), np.float32(1)


@lane_function
def place_codes(
    codes: Array, shares: Array, index: Array, start: int, M: int, first: Array, smooth: bool,
    place: Array, share: Array, turned: Array,
) -> None:  # fmt: skip
    """Write the places of coded rows, and the shares of the table rows after them.

    Beyond the last row that one is repeated: whoever counts the rows leaves it out.
    """
    columns, last = len(first), len(index) - 1
    for c in range(0, columns, SINGLES):
        for r in range(ROWS):
            i = item(index, start + r if start + r < last else last)
            put_lanes(turned, r * SINGLES, widened(lanes(codes, i * columns + c)))
        turn(turned, 0, SINGLES, place, c * ROWS)
    for m in range(columns):
        put_lanes(place, m * ROWS, row_lanes(place, m * ROWS) + item(first, m))
    for c in range(0, M if smooth else 0, SINGLES):
        for r in range(ROWS):
            i = item(index, start + r if start + r < last else last)
            put_lanes(turned, r * SINGLES, lanes(shares, i * M + c))
        turn(turned, 0, SINGLES, share, c * ROWS)


@lane_function
def place_scores(
    scores: Array, context: Array, start: int, columns: int, M: int, first: Array, sizes: Array,
    knots: Array, inner: Array, smooth: bool, place: Array, share: Array, strange: Array,
) -> None:  # fmt: skip
    """Write the places of raw scores and context codes; count codes that have none as strange.

    The context may have more columns than the network looks at.
    """
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
