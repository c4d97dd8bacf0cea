"""The logistic loss over all positive-negative pairs, without visiting them."""

__all__ = ["pairwise_logistic_loss"]

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from harmonrank.paper.losses._gradient import with_gradient
from harmonrank.paper.losses._inputs import LossInputs, check_inputs
from harmonrank.paper.losses._labels import Patterns
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel

# 12 nodes an eighth apart: f has its nearest pole at distance π, so that interpolation leaves
# an error of (1/8π)^12 times some thousands, which is little more than rounding.
_STEP = 0.125
_NODES = 12
_WIDEST = 64.0


def pairwise_logistic_loss(
    scores: Tensor,
    labels: Tensor | Patterns,
    *,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
    block_size: int = 1 << 19,
) -> Tensor:
    """Σ_m w_m · mean over pairs of log(1 + exp(−(s_i − s_j))), without visiting the pairs.

    This is eq. 7 of docs/network.md. The loss of a pair is a smooth function of two scores, so
    every row is replaced by weights on the 12 nodes of an even grid around its score, from which
    polynomials of degree 11 give the same sums to 1e-12 of the largest. Classes then meet on the
    grid, eq. 19 of docs/kernels.md: some hundred nodes each, however many rows, so the cost is
    O(rows · objectives). Where scores lie more than 64 apart, all pairs are visited after all,
    `block_size` at a time.

    An objective without a positive or a negative contributes nothing. Sample weights multiply: the
    pair (i, j) weighs v_i v_j. The arithmetic is float64 on the CPU; only the gradient, one number
    per row, is kept for the backward pass.

    >>> scores = torch.tensor([1.0, 1.0, 1.0])
    >>> round(pairwise_logistic_loss(scores, torch.tensor([1, 0, 0])).item(), 6)  # log 2
    0.693147
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    if block_size < 1:
        raise UsageError(f"`block_size` must be at least 1. Got {block_size}.")
    s = inputs.scores.detach()
    if len(s) > 0 and bool(s.max() - s.min() <= _WIDEST):
        return with_gradient(inputs.scores, *_by_grid(inputs))
    return with_gradient(inputs.scores, *_by_pairs(inputs._replace(scores=s), block_size))


def _by_grid(inputs: LossInputs) -> tuple[float, np.ndarray]:
    """Return the loss and its gradient, the classes meeting on a grid."""
    s, y, v, scale = _host_arrays(inputs)
    first = s.min() - _STEP * (_NODES // 2 - 1)
    size = int((s.max() - first) / _STEP) + _NODES // 2 + 1
    node, share = _shares(s, first)
    positive, negative = _spread(node, share, y, v, size)  # (M, size)
    value, slope = _curves(size)
    loss = scale @ np.einsum("mk,mk->m", positive @ value, negative)
    # Per unit of a positive and of a negative at each node.
    rise, fall = negative @ slope.T, positive @ slope
    return float(loss), _gather(node, share, y, v, scale[:, None] * (rise + fall), scale @ fall)


def _host_arrays(inputs: LossInputs) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, labels, row weights and what a pair of each objective counts, w/(W⁺W⁻).

    An absent objective's pairs count 0.
    """
    s, w, v = inputs.host
    positive, negative = inputs.labels.mass(v)
    pairs = positive * negative
    scale = np.divide(w, pairs, out=np.zeros(len(w)), where=pairs > 0)
    return s, inputs.table.cpu().contiguous().numpy(), np.ones(len(s)) if v is None else v, scale


def _curves(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return f(d) = log(1 + e^−d) and f′(d) of all pairs of nodes, d = positive − negative."""
    gap = _STEP * np.arange(1 - size, size)
    value = np.logaddexp(0.0, -gap)
    slope = -np.exp(-np.logaddexp(0.0, gap))
    place = np.arange(size)[:, None] - np.arange(size) + size - 1
    return value[place], slope[place]


@kernel
def _shares(s: Any, first: float) -> Any:
    """Return the first node of each row, and its Lagrange weights on the 12 nodes from there.

    The score lies between the two in the middle, where the weights are smallest.
    """
    n = s.size
    node, share = np.empty(n, np.int64), np.empty((n, _NODES))
    factor = np.ones(_NODES)
    for k in range(_NODES):
        for other in range(_NODES):
            if other != k:
                factor[k] /= k - other
    for i in range(n):
        place = (s[i] - first) / _STEP
        node[i] = int(place) - (_NODES // 2 - 1)
        t = place - node[i]
        left = 1.0
        for k in range(_NODES):
            share[i, k] = factor[k] * left
            left *= t - k
        right = 1.0
        for k in range(_NODES - 1, -1, -1):
            share[i, k] *= right
            right *= t - k
    return node, share


@kernel
def _spread(node: Any, share: Any, y: Any, v: Any, size: int) -> Any:
    """Return the weight at each node of every objective's positives and negatives.

    Most rows are negatives of all objectives and are spread once. A difference of sums would
    lose what is small beside a heavy row.
    """
    M = y.shape[1]
    positive, negative, plain = np.zeros((M, size)), np.zeros((M, size)), np.zeros(size)
    for i in range(node.size):
        if (y[i] == 0).all():
            for k in range(_NODES):
                plain[node[i] + k] += v[i] * share[i, k]
            continue
        for m in range(M):
            p, q = v[i] * y[i, m], v[i] * (1 - y[i, m])
            for k in range(_NODES):
                positive[m, node[i] + k] += p * share[i, k]
                negative[m, node[i] + k] += q * share[i, k]
    return positive, negative + plain


@kernel
def _gather(node: Any, share: Any, y: Any, v: Any, swing: Any, fall: Any) -> Any:
    """Return v (Σ_m y_m swing_m − fall) at each row's score."""
    gradient = np.zeros(node.size)
    for i in range(node.size):
        total = 0.0
        for k in range(_NODES):
            total -= share[i, k] * fall[node[i] + k]
        for m in range(y.shape[1]):
            if y[i, m] > 0:
                for k in range(_NODES):
                    total += y[i, m] * share[i, k] * swing[m, node[i] + k]
        gradient[i] = v[i] * total
    return gradient


def _by_pairs(inputs: LossInputs, block_size: int) -> tuple[Tensor, Tensor]:
    """Return the loss and its gradient, all pairs being visited, `block_size` at a time."""
    s, v = inputs.scores, inputs.row_weights
    loss, gradient = s.new_zeros(()), torch.zeros_like(s)
    for w, y in zip(inputs.objective_weights, inputs.table.T, strict=True):
        p, q = v * y, v * (1 - y)
        positive, negative = p.nonzero().flatten(), q.nonzero().flatten()
        if not (len(positive) and len(negative)):
            continue
        scale = w / (p.sum() * q.sum())
        columns = min(len(negative), block_size)
        for i in torch.split(positive, max(1, block_size // columns)):
            for j in torch.split(negative, columns):
                gap = s[i][:, None] - s[j]  # (positives, negatives)
                loss -= scale * (logsigmoid(gap) @ q[j]) @ p[i]
                slopes = gap.neg_().sigmoid_()
                gradient.index_add_(0, i, -scale * p[i] * (slopes @ q[j]))
                gradient.index_add_(0, j, scale * q[j] * (p[i] @ slopes))
    return loss, gradient
