"""Block: the numbers of some rows, from the tables, with the row as the last axis.

Every inner loop then runs over neighbouring floats and compiles to vector instructions, whatever
the number of objectives and the width.
"""

__all__ = ["BLOCK", "load_block", "new_block"]

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import product_kernel

Array = NDArray[Any]

BLOCK = 128  # At five objectives and width 2 the buffers of a block stay in the nearest caches.


class _Block(NamedTuple):
    """The numbers of some rows, the row being the last axis of each array."""

    cell: Array  # (objectives, fields): x, y, z of each score, then l, or q, κ and t
    u: Array  # (width,): what the context asks for
    A: Array  # (objectives, objectives): attention, times its sum
    inverse: Array  # (objectives,): one over that sum
    h: Array  # (objectives,): how much the context asks for a token
    c: Array  # (objectives,): how much it asks for what an objective hears, A h
    o: Array  # (objectives,): what an objective's voice adds to the score, A z
    p: Array  # (1, objectives): the voices' shares, softmax of c
    dh: Array  # (objectives,): ∂s/∂h
    g: Array  # (objectives,): the gate, where rows are mixed
    s: Array  # (2,): the fused score, and its relation-aware part
    spare: Array  # (2,): room for intermediate results


@product_kernel
def new_block(M: int, F: int, W: int, R: int) -> Any:
    def new(n: int) -> Any:
        return np.empty((n, R), np.float32)

    A, cell = np.empty((M, M, R), np.float32), np.empty((M, F, R), np.float32)
    p = np.empty((1, M, R), np.float32)
    own = new(M), new(M), new(M), new(M), p, new(M), new(M)
    return _Block(cell, new(W), A, *own, new(2), new(2))


@product_kernel
def load_block(
    b: Any, cells: Array, contexts: Array, place: Array, share: Array, smooth: bool, k: int, n: int
) -> None:
    """Fetch the table rows of a block; u is the constant row plus one row per context feature."""
    M, cell, u = len(b.A), b.cell, b.u
    # Unsigned positions spare every access a test for negative ones.
    for m in range(M):
        for f in range(cells.shape[1]):
            for r in range(n):
                cell[m, f, r] = cells[np.uint32(place[k, m, r]), f]
            if smooth:
                for r in range(n):
                    after = cells[np.uint32(place[k, m, r]) + np.uint32(1), f]
                    cell[m, f, r] += share[k, m, r] * (after - cell[m, f, r])
    for c in range(contexts.shape[1]):
        for r in range(n):
            u[c, r] = contexts[0, c]
        for m in range(M, place.shape[1]):
            for r in range(n):
                u[c, r] += contexts[np.uint32(place[k, m, r]), c]
