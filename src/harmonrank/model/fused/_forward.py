"""The forward kernel: fused scores from tables, and each row's derivatives for the backward pass.

Rows go in blocks, and blocks in parts that threads share.
"""

__all__ = ["fuse_parts"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import claim, finish, product_kernel
from harmonrank.model.fused._block import BLOCK, load_block, new_block
from harmonrank.model.fused._derivatives import derive_block
from harmonrank.model.fused._fusing import fuse_block
from harmonrank.model.fused._places import place_codes, place_scores, touch

Array = NDArray[Any]


@product_kernel
def fuse_parts(
    claims: Array, who: int, edges: Array, index: Array, codes: Array, shares: Array,
    scores: Array, context: Array, first: Array, sizes: Array, knots: Array, inner: Array,
    cells: Array, contexts: Array, M: int, d: int, attend: bool, ask: bool, smooth: bool,
    bias: Any, derive: bool, place: Array, share: Array, J: Array, s: Array, unknown: Array,
) -> None:  # fmt: skip
    """Fuse rows part by part, as long as there are parts that no other thread has claimed.

    A part is the blocks between two edges. To train (`derive`), rows are given as `codes[index]`
    and `shares[index]`, and their places, shares and derivatives are kept: (blocks, objectives +
    features, BLOCK), (blocks, objectives, BLOCK) and (blocks, derivatives, BLOCK). To score, they
    are given as scores and context codes, and unknown[part] is how many of its codes the tables do
    not have. One kernel serves both, as it is the one that takes long to compile.

    All results of a part are written before it counts as finished: the caller may go on as soon
    as all parts are, and before this function returns.
    """
    R = BLOCK
    b = new_block(M, cells.shape[1], contexts.shape[1], R)
    here, part_of = np.empty((1, len(first), R), np.int32), np.empty((1, M, R), np.float32)
    while True:
        part = claim(claims, who, len(edges) - 1)
        if part >= len(edges) - 1:
            return
        low, high = edges[part], edges[part + 1]
        strange = 0
        if derive:
            touch(codes, shares, index[low * R : high * R], smooth)
        for k in range(low, high):
            start = k * R
            n = min(R, len(s) - start)
            if derive:
                rows = index[start : start + n]
                place_codes(codes, shares, rows, first, smooth, place, share, k, n)
                load_block(b, cells, contexts, place, share, smooth, k, n)
            else:
                strange += place_scores(
                    scores[start : start + n], context[start : start + n], first, sizes, knots,
                    inner, smooth, here[0], part_of[0], n,
                )  # fmt: skip
                load_block(b, cells, contexts, here, part_of, smooth, 0, n)
            fuse_block(b, d, attend, ask, smooth, bias, n)
            if derive:
                derive_block(b, d, attend, ask, smooth, n, J, k)
            for r in range(n):
                s[start + r] = b.s[0, r]
        if not derive:
            unknown[part] = strange
        finish(claims)
