"""The backward kernel: scale each row's derivatives by its slope and add them to the tables."""

__all__ = ["scatter_parts"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import claim, finish, product_kernel

Array = NDArray[Any]


@product_kernel
def scatter_parts(
    claims: Array, who: int, edges: Array, slope: Array, place: Array, share: Array, J: Array,
    M: int, cells: Array, contexts: Array,
) -> None:  # fmt: skip
    """Write ∂L/∂cells and ∂L/∂contexts of each part, given ∂L/∂s and what `fuse_parts` kept.

    Parts are claimed as there; each has sums of its own, (parts, …), so that it does not matter
    who makes them.
    """
    while True:
        part = claim(claims, who, len(edges) - 1)
        if part >= len(edges) - 1:
            return
        low, high = edges[part], edges[part + 1]
        _scatter(slope, low, high, place, share, J, M, cells[part], contexts[part])
        finish(claims)


@product_kernel
def _scatter(
    slope: Array, low: int, high: int, place: Array, share: Array, J: Array, M: int,
    cells: Array, contexts: Array,
) -> None:  # fmt: skip
    """Sum over some blocks.

    Sums are float64: a popular bucket takes thousands of terms. The last field of a cell is
    added to the score as it is, so its derivative is 1 and not stored.
    """
    R, F = place.shape[2], cells.shape[1] - 1
    cells[:] = 0.0
    contexts[:] = 0.0
    for k in range(low, high):
        start = k * R
        n = min(R, len(slope) - start)
        for m in range(M):
            if len(share):
                _scatter_mixed(slope, start, place, share, k, m, J, cells, n)
            else:
                _scatter_whole(slope, start, place, k, m, J, cells, n)
        for m in range(M, place.shape[1]):
            _scatter_context(slope, start, place, k, m, J, M * F, contexts, n)
        if place.shape[1] == M:
            # Without features the constant row serves every score.
            for c in range(contexts.shape[1]):
                for r in range(n):
                    contexts[0, c] += slope[start + r] * J[k, M * F + c, r]


@product_kernel
def _scatter_whole(
    slope: Array, start: int, place: Array, k: int, m: int, J: Array, cells: Array, n: int
) -> None:
    """Add four fields at a time: rows of one bucket follow each other, and must wait their turn."""
    F = cells.shape[1] - 1
    for f in range(0, F // 4 * 4, 4):
        j = m * F + f
        for r in range(n):
            g, row = slope[start + r], np.uint32(place[k, m, r])
            cells[row, f] += g * J[k, j, r]
            cells[row, f + 1] += g * J[k, j + 1, r]
            cells[row, f + 2] += g * J[k, j + 2, r]
            cells[row, f + 3] += g * J[k, j + 3, r]
    for f in range(F // 4 * 4, F):
        for r in range(n):
            cells[np.uint32(place[k, m, r]), f] += slope[start + r] * J[k, m * F + f, r]
    for r in range(n):
        cells[np.uint32(place[k, m, r]), F] += slope[start + r]


@product_kernel
def _scatter_mixed(
    slope: Array, start: int, place: Array, share: Array, k: int, m: int, J: Array, cells: Array,
    n: int,
) -> None:  # fmt: skip
    """Divide what a row adds between the two table rows that it mixes, two fields at a time."""
    F = cells.shape[1] - 1
    for f in range(0, F // 2 * 2, 2):
        j = m * F + f
        for r in range(n):
            g, row = slope[start + r], np.uint32(place[k, m, r])
            after, part = row + np.uint32(1), share[k, m, r]
            first, second = g * J[k, j, r], g * J[k, j + 1, r]
            cells[row, f] += first - part * first
            cells[row, f + 1] += second - part * second
            cells[after, f] += part * first
            cells[after, f + 1] += part * second
    for f in range(F // 2 * 2, F):
        for r in range(n):
            row, only = np.uint32(place[k, m, r]), slope[start + r] * J[k, m * F + f, r]
            cells[row, f] += only - share[k, m, r] * only
            cells[row + np.uint32(1), f] += share[k, m, r] * only
    for r in range(n):
        row, g = np.uint32(place[k, m, r]), slope[start + r]
        cells[row, F] += g - share[k, m, r] * g
        cells[row + np.uint32(1), F] += share[k, m, r] * g


@product_kernel
def _scatter_context(
    slope: Array, start: int, place: Array, k: int, m: int, J: Array, to_u: int, contexts: Array,
    n: int,
) -> None:  # fmt: skip
    for c in range(0, contexts.shape[1], 2):
        for r in range(n):
            g, row = slope[start + r], np.uint32(place[k, m, r])
            contexts[row, c] += g * J[k, to_u + c, r]
            contexts[row, c + 1] += g * J[k, to_u + c + 1, r]
