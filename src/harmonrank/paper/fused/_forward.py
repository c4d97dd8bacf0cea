"""The forward kernels: fused scores from tables, and each row's derivatives for the backward pass.

Rows go sixteen at a time, filled up at the end, so that a row meets the same instructions wherever
it stands: its score is the same to the last bit in any company.
"""

__all__ = ["score_rows", "step_parts"]

from typing import Any

from numpy.typing import NDArray

from harmonrank.paper.fused._derivatives import derive_rows
from harmonrank.paper.fused._fusing import fuse_rows
from harmonrank.paper.fused._places import place_codes, place_scores
from harmonrank.paper.fused._room import load_rows
from harmonrank.support.kernel import claim, finish, lane_kernel
from harmonrank.support.simd import ROWS, put_lanes, row_lanes

Array = NDArray[Any]


@lane_kernel
def score_rows(
    begin: int, end: int, scores: Array, context: Array, columns: int, fused: Array, strange: Array,
    first: Array, sizes: Array, knots: Array, inner: Array, cells: Array, contexts: Array, M: int,
    F: int, d: int, W: int, attend: bool, ask: bool, smooth: bool, bias: Any, place: Array,
    share: Array, cell: Array, u: Array, A: Array, own: Array, s: Array, turned: Array,
) -> None:  # fmt: skip
    """Write the fused scores of some rows, a multiple of sixteen.

    Context codes that the tables do not have leave something other than zeros in `strange`. Some
    rows must follow the last one, as eight numbers are read at a time.
    """
    for start in range(begin, end, ROWS):
        place_scores(
            scores, context, start, columns, M, first, sizes, knots, inner, smooth, place, share,
            strange,
        )  # fmt: skip
        load_rows(place, share, cells, contexts, M, len(first) - M, F, W, smooth, cell, u, turned)
        fuse_rows(M, F, d, attend, ask, smooth, bias, cell, u, A, own, s)
        put_lanes(fused, start, row_lanes(s, 0))


@lane_kernel
def step_parts(
    claims: Array, who: int, edges: Array, index: Array, codes: Array, shares: Array, D: Array,
    J: Array, fused: Array, first: Array, cells: Array, contexts: Array, M: int, F: int, d: int,
    W: int, attend: bool, ask: bool, smooth: bool, bias: Any, place: Array, share: Array,
    cell: Array, u: Array, A: Array, own: Array, s: Array, turned: Array,
) -> None:  # fmt: skip
    """Fuse rows part by part, as long as there are parts that no other thread has claimed.

    A part is the rows of a batch between two edges, given as `codes[index]` and `shares[index]`.
    Their derivatives are kept in J, (rows, derivatives), flat.

    All results of a part are written before it counts as finished: the caller may go on as soon
    as all parts are, and before this function returns.
    """
    while True:
        part = claim(claims, who, len(edges) - 1)
        if part >= len(edges) - 1:
            return
        for start in range(edges[part], edges[part + 1], ROWS):
            place_codes(codes, shares, index, start, M, first, smooth, place, share, turned)
            load_rows(
                place, share, cells, contexts, M, len(first) - M, F, W, smooth, cell, u, turned
            )
            fuse_rows(M, F, d, attend, ask, smooth, bias, cell, u, A, own, s)
            derive_rows(M, F, d, ask, smooth, cell, u, A, own, s, D, J, start)
            put_lanes(fused, start, row_lanes(s, 0))
        finish(claims)
