"""The solver beneath soft ranks: pool adjacent violators on sorted scores, and its gradient.

The projection of ascending z onto the permutahedron of the target ranks ρ cuts the items into
blocks. Within a block B the soft ranks follow the scores, and sum to what the block's target ranks
sum to (weights w, one each if there are none):

    l2:  r_i = z_i + c_B         with  Σ_B w r = Σ_B w ρ
    kl:  r_i = exp(z_i + c_B)    with  Σ_B w r = Σ_B w ρ

A block of one item has r = ρ, and two neighbours are pooled when r would fall where z rises. A
block is kept as a *base* z and the *level*, which is the soft rank at the base, so that a common
offset of all scores, however large, costs no digits: r = level + (z − base), or
level·exp(z − base).

An item of weight w stands for w tied copies. Its ρ is the mean rank of those copies,
W_before + (w + 1)/2; copies are always pooled, and Σ over copies of ρ is w·ρ in both cases.
"""

__all__ = ["pool", "project_rows", "pull_back_rows"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import inline_kernel, kernel

Array = NDArray[Any]


@inline_kernel
def _join(kl: bool, base: Array, level: Array, total: Array, weight: Array, a: int) -> None:
    """Pool block a + 1 into block a.

    `total` is Σ w(ρ − z + base) over `weight` Σ w for l2; Σ w ρ over Σ w exp(z − base) for kl.
    """
    b = a + 1
    step = base[b] - base[a]
    if kl:
        # The larger base keeps every exponent at or below zero.
        total[a] += total[b]
        weight[a] = weight[b] + weight[a] * np.exp(-step)
        base[a] = base[b]
    else:
        total[a] += total[b] - weight[b] * step
        weight[a] += weight[b]
    # Items without weight are pooled with each other only if tied, and then keep their level.
    if weight[a] > 0:
        level[a] = total[a] / weight[a]


@inline_kernel
def _violates(kl: bool, base: Array, level: Array, a: int) -> bool:
    """Tell whether block a would rank its own items too low beside block a + 1."""
    step = base[a + 1] - base[a]
    if kl:
        return bool(level[a] <= level[a + 1] * np.exp(-step))
    return bool(level[a] + step <= level[a + 1])


@kernel
def pool(
    z: Array,
    weights: Array | None,
    kl: bool,
    start: Array,
    base: Array,
    level: Array,
    total: Array,
    weight: Array,
) -> int:
    """Cut ascending z into blocks; fill start, base, level, total and weight, return their number.

    `weights` are in the order of z, or None. All arrays hold float64 except `start`, and have room
    for one block per item.
    """
    top = -1
    before = 0.0
    for i in range(z.size):
        w = 1.0 if weights is None else weights[i]
        rho = before + 0.5 * (w + 1)
        before += w
        top += 1
        start[top], base[top], level[top] = i, z[i], rho
        total[top], weight[top] = w * rho, w
        while top > 0 and _violates(kl, base, level, top - 1):
            top -= 1
            _join(kl, base, level, total, weight, top)
    return top + 1


@kernel
def project_rows(
    ascending: Array,
    order: Array,
    weights: Array | None,
    centre: Array,
    factor: Array,
    kl: bool,
    ranks: Array,
    block: Array,
    pooled: Array,
    norm: Array,
    lean: Array,
) -> None:
    """Write the soft ranks of every row, and what the gradient needs.

    Args:
        ascending: The sorted scores of every row.
        order: Where each sorted score came from.
        weights: (rows, n), in the original order, or None.
        centre: Per row; z = (score − centre)·factor.
        factor: Per row.
        kl: Entropic instead of quadratic regularisation.
        ranks: Filled with soft ranks, in the original order.
        block: Filled with each item's block among those of several items; −1 for no gradient.
        pooled: Filled, per row, with the number of items in blocks of several.
        norm: Filled, per row and block, with Σ w (l2) or Σ w ρ (kl).
        lean: Filled, per row and block, with Σ w a z (a = 1 for l2, r for kl).
    """
    rows, n = ascending.shape
    z = np.empty(n)
    sorted_weights = None if weights is None else np.empty(n)
    start = np.empty(n, np.int32)
    base, level, total, weight = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for row in range(rows):
        for i in range(n):
            z[i] = (ascending[row, i] - centre[row]) * factor[row]
            if weights is not None and sorted_weights is not None:
                sorted_weights[i] = weights[row, order[row, i]]
        blocks = pool(z, sorted_weights, kl, start, base, level, total, weight)
        several = 0
        for b in range(blocks):
            first, end = start[b], (start[b + 1] if b + 1 < blocks else n)
            # One item, or tied items without weight, rank where they stand: no gradient.
            if end == first + 1 or weight[b] == 0:
                for i in range(first, end):
                    ranks[row, order[row, i]] = level[b]
                    block[row, order[row, i]] = -1
                continue
            lean_sum = 0.0
            for i in range(first, end):
                step = z[i] - base[b]
                r = level[b] * np.exp(step) if kl else level[b] + step
                ranks[row, order[row, i]] = r
                block[row, order[row, i]] = several
                w = 1.0 if sorted_weights is None else sorted_weights[i]
                lean_sum += w * z[i] * (r if kl else 1.0)
            norm[row, several] = total[b] if kl else weight[b]
            lean[row, several] = lean_sum
            pooled[row] += end - first
            several += 1


@kernel
def pull_back_rows(
    upstream: Array,
    scores: Array,
    ranks: Array,
    weights: Array | None,
    centre: Array,
    factor: Array,
    spread: Array,
    kl: bool,
    block: Array,
    norm: Array,
    lean: Array,
    out: Array,
) -> None:
    """Write the gradient with respect to the scores of every row.

    With a = 1 (l2) or r (kl), norm N_B and G_B = Σ_B a g, the gradient in z is
    dz_j = a_j (g_j − w_j G_B/N_B), zero in a block of one. z = (s − mean)·factor with
    factor = c/std adds the term through std: ds_j = factor·(dz_j − w_j z_j/(W c²) Σ_k dz_k z_k).
    The term through the mean is zero, since dz sums to zero in every block. `spread` holds W c²,
    or infinity when the factor is a constant.
    """
    rows, n = scores.shape
    for row in range(rows):
        blocks = 0
        for i in range(n):
            blocks = max(blocks, block[row, i] + 1)
        gains = np.zeros(blocks)
        turn = 0.0
        for i in range(n):
            b = block[row, i]
            if b >= 0:
                z = (scores[row, i] - centre[row]) * factor[row]
                ag = upstream[row, i] * (ranks[row, i] if kl else 1.0)
                gains[b] += ag
                turn += ag * z
        for b in range(blocks):
            gains[b] /= norm[row, b]
            turn -= gains[b] * lean[row, b]
        turn /= spread[row]
        for i in range(n):
            b = block[row, i]
            w = 1.0 if weights is None else weights[row, i]
            z = (scores[row, i] - centre[row]) * factor[row]
            dz = -w * z * turn
            if b >= 0:
                dz += (upstream[row, i] - w * gains[b]) * (ranks[row, i] if kl else 1.0)
            out[row, i] = factor[row] * dz
