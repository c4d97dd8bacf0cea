"""The projection behind soft ranks: scores to z, z to ranks, and the gradients of both.

The projection of ascending z onto the permutahedron of the target ranks ρ, by pooling adjacent
violators, cuts the items into blocks. Within a block B the soft ranks follow the scores, and sum to
what the block's target ranks sum to (weights w, one each if there are none):

    l2:  r_i = z_i + c_B         with  Σ_B w r = Σ_B w ρ
    kl:  r_i = exp(z_i + c_B)    with  Σ_B w r = Σ_B w ρ

These are eq. 1 and eq. 2 of docs/soft-ranks.md, with weights. A block of one item has r = ρ, and
two neighbours are pooled when r would fall where z rises. A block is kept as a *base* z and the
*level*, which is the soft rank at the base, so that a common offset of all scores, however large,
costs no digits: r = level + (z − base), or level·exp(z − base).

An item of weight w stands for w tied copies. Its ρ is the mean rank of those copies,
W_before + (w + 1)/2, eq. 5 of docs/soft-ranks.md; copies are always pooled, and Σ over copies of ρ
is w·ρ in both cases.
"""

__all__ = ["pool", "project", "pull_back", "scale"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.kernel import inline_kernel, kernel

Array = NDArray[Any]

# An item without weight is one whose weight vanishes: too light to move a sum, but with a quotient.
_NOTHING = 1e-140

_BARELY = 1e-120


@kernel
def _moment(scores: Array, weights: Array | None, unit: float, mean: float, square: bool) -> float:
    """Return Σ w (s·unit − mean), or its square's sum."""
    # Four sums side by side, so that one addition need not wait for the last.
    sums = np.zeros(4)
    a = b = c = d = 0.0
    n = scores.size
    for i in range(0, n - n % 4, 4):
        p, q = scores[i] * unit - mean, scores[i + 1] * unit - mean
        r, s = scores[i + 2] * unit - mean, scores[i + 3] * unit - mean
        if square:
            p, q, r, s = p * p, q * q, r * r, s * s
        if weights is not None:
            p, q, r, s = p * weights[i], q * weights[i + 1], r * weights[i + 2], s * weights[i + 3]
        a, b, c, d = a + p, b + q, c + r, d + s
    for i in range(n - n % 4, n):
        p = scores[i] * unit - mean
        sums[i % 4] = (p * p if square else p) * (1.0 if weights is None else weights[i])
    return float((a + sums[0]) + (b + sums[1]) + ((c + sums[2]) + (d + sums[3])))


@kernel
def _extremes(scores: Array) -> tuple[float, float, bool]:
    """Return the lowest and the highest score, and whether all are finite."""
    n, bad = scores.size, 0
    for i in range(n):
        bad += scores[i] - scores[i] != 0
    # Two of each side by side, for the same reason as above.
    a = c = np.inf
    b = d = -np.inf
    for i in range(0, n - n % 2, 2):
        p, q = float(scores[i]), float(scores[i + 1])
        a, b = p if p < a else a, p if p > b else b
        c, d = q if q < c else c, q if q > d else d
    if n % 2:
        a, b = min(a, float(scores[n - 1])), max(b, float(scores[n - 1]))
    return min(a, c), max(b, d), bad == 0


@kernel
def _weighted_extremes(scores: Array, weights: Array) -> tuple[float, float]:
    """Return the lowest and the highest score that has weight."""
    low, high = np.inf, -np.inf
    for i in range(scores.size):
        if weights[i] > 0:
            low, high = min(low, float(scores[i])), max(high, float(scores[i]))
    return low, high


@kernel
def scale(
    scores: Array, weights: Array | None, strength: float, kl: bool, standardise: bool
) -> tuple[bool, tuple[float, float], tuple[float, float, float]]:
    """Return how scores become z = (score − centre)·factor.

    Standardised, factor = c/std with c = W/strength for l2, whose target ranks run to W (the number
    of items or the sum of weights), and c = 1/strength for kl, whose log target ranks have a spread
    that does not grow with W. With all scores equal the factor is zero: every item is tied.

    Returns:
        Whether all scores are finite, the lowest and the highest, centre, factor, and the spread
        W c², which the gradient through std divides by.
    """
    low, high, finite = _extremes(scores)
    bottom, top = (low, high) if weights is None else _weighted_extremes(scores, weights)
    if not finite or not standardise or not bottom < top:
        return finite, (low, high), (0.0, 0.0 if standardise else 1 / strength, np.inf)
    total = float(scores.size) if weights is None else weights.sum()
    # A power of two near the largest score keeps squares in range and rounds nothing.
    unit = 2.0 ** min(-np.floor(np.log2(max(-bottom, top))), 1022.0)
    mean = _moment(scores, weights, unit, 0.0, False) / total
    variance = _moment(scores, weights, unit, mean, True) / total
    c = (1.0 if kl else total) / strength
    slope = c / np.sqrt(variance) * unit if variance > 0 else np.inf
    # Scores that differ by less than float64 can divide by count as equal.
    if not np.isfinite(slope):
        return True, (low, high), (0.0, 0.0, np.inf)
    return True, (low, high), (mean / unit, slope, total * c * c)


@inline_kernel
def _violates(kl: bool, level_a: float, level_b: float, step: float) -> bool:
    """Tell whether r would fall from block a to block b, whose base is `step` higher."""
    if kl:
        return bool(level_a <= level_b * np.exp(-step))
    return level_a + step <= level_b


@inline_kernel
def _join(
    kl: bool, total_a: float, weight_a: float, total_b: float, weight_b: float, step: float
) -> tuple[float, float]:
    """Return total and weight of blocks a and b pooled, on the base of a for l2, of b for kl."""
    if kl:
        # The higher base keeps every exponent at or below zero.
        return total_a + total_b, weight_b + weight_a * np.exp(-step)
    return total_a + (total_b - weight_b * step), weight_a + weight_b


@kernel
def pool(ascending: Array, line: Any, weights: Array | None, kl: bool, blocks: Any) -> int:
    """Cut sorted scores into blocks and return their number.

    Fills, per block, where it starts, its base and level, and level = total/weight: the sums
    Σ w(ρ − z + base) and Σ w for l2, Σ w ρ and Σ w exp(z − base) for kl.

    Args:
        ascending: The sorted scores.
        line: Centre and factor, z = (score − centre)·factor.
        weights: In sorted order, or None.
        kl: Entropic instead of quadratic regularisation.
        blocks: Start, base, level, total and weight, arrays with room for one block per item.
    """
    (centre, factor), (start, base, level, total, weight) = line, blocks
    if ascending.size == 0:
        return 0
    top, one, before = np.uint64(0), np.uint64(1), 0.0
    # The newest block lives in these variables, the others on the stack, below `top`.
    b_start, b_base, b_level, b_total, b_weight = 0, 0.0, 0.0, 0.0, 0.0
    for i in range(ascending.size):
        w = 1.0 if weights is None else weights[i]
        z, rho = (ascending[i] - centre) * factor, before + 0.5 * (w + 1)
        before += w
        w = 1.0 if weights is None else max(w, _NOTHING)
        if i == 0:
            b_base, b_level, b_total, b_weight = z, rho, w * rho, w
            continue
        if not _violates(kl, b_level, rho, z - b_base):
            start[top], base[top], level[top] = b_start, b_base, b_level
            total[top], weight[top] = b_total, b_weight
            top += one
            b_start, b_base, b_level, b_total, b_weight = i, z, rho, w * rho, w
            continue
        b_total, b_weight = _join(kl, b_total, b_weight, w * rho, w, z - b_base)
        b_base, b_level = (z if kl else b_base), b_total / b_weight
        while top > 0:
            a = top - one
            step = b_base - base[a]
            if not _violates(kl, level[a], b_level, step):
                break
            b_total, b_weight = _join(kl, total[a], weight[a], b_total, b_weight, step)
            b_base, b_level = (b_base if kl else base[a]), b_total / b_weight
            top, b_start = a, start[a]
    start[top], base[top], level[top] = b_start, b_base, b_level
    total[top], weight[top] = b_total, b_weight
    return int(top) + 1


@kernel
def project(
    ascending: Array, order: Array, weights: Array | None, line: Any, kl: bool, filled: Any
) -> tuple[int, int]:
    """Write the soft ranks of some scores, and what the gradient needs.

    Args:
        ascending: The sorted scores.
        order: Where each sorted score came from.
        weights: In the original order, or None.
        line: Centre and factor, z = (score − centre)·factor.
        kl: Entropic instead of quadratic regularisation.
        filled: With soft ranks, in the original order; with each item's block, numbered from 1, 0
            being for items without a gradient; per block, with Σ w a (a = 1 for l2, r for kl).

    Returns:
        How many items have a gradient, and how many blocks there are, block 0 included.
    """
    n, (centre, factor), (ranks, block, norm) = ascending.size, line, filled
    start, name = np.empty(n + 1, np.int32), np.empty(n, np.uint32)
    opens = np.zeros(n, np.uint8)
    base, level, total, weight = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    sorted_weights = None if weights is None else weights[order]
    end = pool(ascending, line, sorted_weights, kl, (start, base, level, total, weight))
    start[end] = n
    last, alone = 0, 0
    for b in range(end):
        opens[start[b]] = b > 0
        # One item, or tied items without weight, rank where they stand: no gradient.
        size = start[b + 1] - start[b]
        fixed = (size == 1) | (weight[b] < _BARELY)
        alone += size if fixed else 0
        last += 0 if fixed else 1
        name[b] = 0 if fixed else last
        norm[name[b]] = total[b] if kl else weight[b]
    # Nobody could predict where blocks end, so for l2 this loop has no branch.
    here = np.uint64(0)
    for i in range(n):
        here += np.uint64(opens[i])
        step = (ascending[i] - centre) * factor - base[here]
        to = np.uint32(order[i])
        ranks[to] = level[here] * np.exp(step) if kl else level[here] + step
        block[to] = name[here]
    return n - alone, last + 1


@kernel
def pull_back(
    upstream: Array, scores: Array, weights: Array | None, line: Any, kl: bool, filled: Any,
    out: Array,
) -> None:  # fmt: skip
    """Write the gradient with respect to the scores.

    With a = 1 (l2) or r (kl), N_B = Σ_B w a and G_B = Σ_B a g, the gradient in z is
    dz_j = a_j (g_j − w_j G_B/N_B), zero in a block of one. z = (s − mean)·factor with
    factor = c/std adds the term through std: ds_j = factor·(dz_j − w_j z_j/(W c²) Σ_k dz_k z_k).
    These are eq. 6 and eq. 7 of docs/soft-ranks.md. The term through the mean is zero, since dz
    sums to zero in every block.

    Args:
        upstream: g.
        scores: s.
        weights: Of the items, or None.
        line: Centre, factor, and the spread W c², or infinity when the factor is a constant.
        kl: Entropic instead of quadratic regularisation.
        filled: What `project` filled.
        out: Filled with ds.
    """
    n, (centre, factor, spread), (ranks, block, norm) = scores.size, line, filled
    # Two sums per block, so that one addition need not wait for the last.
    gains = np.zeros((norm.size, 2))
    for i in range(n):
        a = ranks[i] if kl else 1.0
        gains[block[i], np.uint64(i) & np.uint64(1)] += a * upstream[i]
    # From here on a block's mean gain, and 1; zeros for block 0. Nobody could predict a branch.
    gains[0] = 0.0
    for b in range(1, norm.size):
        gains[b, 0] = (gains[b, 0] + gains[b, 1]) / norm[b]
        gains[b, 1] = 1.0
    turn = 0.0
    for i in range(n):
        w = 1.0 if weights is None else weights[i]
        a = ranks[i] if kl else 1.0
        b = block[i]
        # eq. 6 of docs/soft-ranks.md
        dz = a * (gains[b, 1] * upstream[i] - w * gains[b, 0])
        turn += dz * ((scores[i] - centre) * factor)
        out[i] = dz
    turn /= spread
    for i in range(n):
        w = 1.0 if weights is None else weights[i]
        # eq. 7 of docs/soft-ranks.md
        out[i] = factor * (out[i] - w * ((scores[i] - centre) * factor) * turn)
