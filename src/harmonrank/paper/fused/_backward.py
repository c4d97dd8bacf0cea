"""The backward kernel: scale each row's derivatives by its slope and add them to the tables."""

__all__ = ["scatter_parts"]

from typing import Any

from numpy.typing import NDArray

from harmonrank.support.kernel import claim, finish, lane_function, lane_kernel
from harmonrank.support.simd import SINGLES, double_lanes, item, lanes, put_lanes
from harmonrank.support.simd_maths import widened

Array = NDArray[Any]


@lane_kernel
def scatter_parts(
    claims: Array, who: int, edges: Array, index: Array, codes: Array, shares: Array, slope: Array,
    J: Array, M: int, first: Array, smooth: bool, cells: Array, contexts: Array, wide: int,
    asked: int,
) -> None:  # fmt: skip
    """Add ∂L/∂cells and ∂L/∂contexts of each part, given ∂L/∂s and what `step_parts` kept.

    Parts are claimed as there; each has sums of its own, so that it does not matter who makes
    them. They begin at zero and are float64, as a popular bucket takes thousands of terms.

    `cells` is (parts, rows of the table, wide) and `contexts` (parts, rows of the table, asked),
    both flat; a row is filled up to a multiple of eight numbers.
    """
    parts = len(edges) - 1
    while True:
        part = claim(claims, who, parts)
        if part >= parts:
            return
        of_cells, of_contexts = part * (len(cells) // parts), part * (len(contexts) // parts)
        _scatter_cells(
            edges[part], edges[part + 1], index, codes, shares, slope, J, M, first, smooth, cells,
            of_cells, wide, asked,
        )  # fmt: skip
        _scatter_contexts(
            edges[part], edges[part + 1], index, codes, slope, J, M, first, contexts, of_contexts,
            wide, asked,
        )  # fmt: skip
        finish(claims)


@lane_function
def _scatter_cells(
    low: int, high: int, index: Array, codes: Array, shares: Array, slope: Array, J: Array, M: int,
    first: Array, smooth: bool, cells: Array, of_cells: int, wide: int, asked: int,
) -> None:  # fmt: skip
    """Add to the row of each score, or divide between the two rows that are mixed."""
    columns = len(first)
    for row in range(low, high):
        i, own = item(index, row), row * (M * wide + asked)
        for m in range(M):
            k = of_cells + (item(first, m) + item(codes, i * columns + m)) * wide
            for f in range(0, wide, SINGLES):
                whole = item(slope, row) * lanes(J, own + m * wide + f)
                if smooth:
                    after, kf = item(shares, i * M + m) * whole, k + wide + f
                    put_lanes(cells, kf, double_lanes(cells, kf) + widened(after))
                    whole = whole - after
                put_lanes(cells, k + f, double_lanes(cells, k + f) + widened(whole))


@lane_function
def _scatter_contexts(
    low: int, high: int, index: Array, codes: Array, slope: Array, J: Array, M: int, first: Array,
    contexts: Array, of_contexts: int, wide: int, asked: int,
) -> None:  # fmt: skip
    """Add to the row of each feature's code; without features to the constant row."""
    columns = len(first)
    for row in range(low, high):
        i, own = item(index, row), row * (M * wide + asked) + M * wide
        for f in range(0, asked, SINGLES):
            more = widened(item(slope, row) * lanes(J, own + f))
            for m in range(M, columns):
                k = of_contexts + (item(first, m) + item(codes, i * columns + m)) * asked + f
                put_lanes(contexts, k, double_lanes(contexts, k) + more)
            if columns == M:
                k = of_contexts + f
                put_lanes(contexts, k, double_lanes(contexts, k) + more)
