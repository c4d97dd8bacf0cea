"""The loops of ridge logistic regressions: sums over the rows of a block, in pieces."""

__all__ = ["HESSIAN_PIECES", "PIECES", "add_hessian", "add_image", "add_values", "probabilities"]

from typing import Any

import numpy as np

from harmonrank.support.kernel import inline_kernel, kernel
from harmonrank.support.logistic import sigmoid_and_loss, sigmoid_of

PIECES = 16
"""Sums of a block are taken in so many pieces whatever the threads: they do not depend on them."""

HESSIAN_PIECES = 4
"""The same for the matrix of second derivatives, of which each piece has its own."""


@inline_kernel
def _linear(numbers: Any, codes: Any, i: int, theta: Any, logits: Any) -> None:
    """Set `logits` to row i of Xθ, a number per objective."""
    for m in range(len(logits)):
        logits[m] = theta[0, m]
    for k in range(numbers.shape[1]):
        for m in range(len(logits)):
            logits[m] += numbers[i, k] * theta[1 + k, m]
    own = i if len(codes) > 1 else 0  # All rows may share one.
    for c in range(codes.shape[1]):
        for m in range(len(logits)):
            logits[m] += theta[codes[own, c], m]


@inline_kernel
def _curve(logit: Any, weight: Any) -> Any:
    """Return v p(1−p), the curvature of a row's loss."""
    p = sigmoid_of(logit)
    return weight * p * (1.0 - p)


@inline_kernel
def _add_row(numbers: Any, codes: Any, i: int, each: Any, squared: bool, total: Any) -> None:
    """Add row i of X, or its squares, times a number per objective."""
    for m in range(len(each)):
        total[0, m] += each[m]
    for k in range(numbers.shape[1]):
        x = numbers[i, k] * numbers[i, k] if squared else numbers[i, k]
        for m in range(len(each)):
            total[1 + k, m] += x * each[m]
    for c in range(codes.shape[1]):
        for m in range(len(each)):
            total[codes[i, c], m] += each[m]


@kernel
def add_values(
    piece: int, numbers: Any, codes: Any, labels: Any, weight: Any, theta: Any, value: Any,
    slope: Any, diagonal: Any,
) -> None:  # fmt: skip
    """Add a piece's log-likelihood, gradient and diagonal of the curvature."""
    n, M = len(numbers), theta.shape[1]
    g, h, logit = np.empty(M), np.empty(M), np.empty(M)
    for i in range(piece * n // PIECES, (piece + 1) * n // PIECES):
        _linear(numbers, codes, i, theta, logit)
        for m in range(M):
            p, loss = sigmoid_and_loss(logit[m], labels[i, m])
            value[piece, m] -= weight[i] * loss
            g[m] = weight[i] * (labels[i, m] - p)
            h[m] = weight[i] * p * (1.0 - p)
        _add_row(numbers, codes, i, g, False, slope[piece])
        _add_row(numbers, codes, i, h, True, diagonal[piece])


@kernel
def add_hessian(piece: int, numbers: Any, codes: Any, weight: Any, theta: Any, upper: Any) -> None:
    """Add a piece's upper half of Xᵀ diag(v p(1−p)) X, (size, size, objectives)."""
    n, K = numbers.shape
    M, C = theta.shape[1], codes.shape[1]
    place, value = np.arange(1 + K + C), np.ones(1 + K + C)
    logit, curve = np.empty(M), np.empty(M)
    for i in range(piece * n // HESSIAN_PIECES, (piece + 1) * n // HESSIAN_PIECES):
        _linear(numbers, codes, i, theta, logit)
        for m in range(M):
            curve[m] = _curve(logit[m], weight[i])
        value[1 : 1 + K] = numbers[i]
        for c in range(C):
            place[1 + K + c] = codes[i, c]
        for a in range(1 + K + C):
            for b in range(a, 1 + K + C):
                both = value[a] * value[b]
                for m in range(M):
                    upper[piece, place[a], place[b], m] += both * curve[m]


@kernel
def add_image(
    piece: int, numbers: Any, codes: Any, weight: Any, theta: Any, direction: Any, image: Any
) -> None:
    """Add a piece's share of the curvature's product with a direction."""
    n, M = len(numbers), direction.shape[1]
    t, logit = np.empty(M), np.empty(M)
    for i in range(piece * n // PIECES, (piece + 1) * n // PIECES):
        _linear(numbers, codes, i, theta, logit)
        _linear(numbers, codes, i, direction, t)
        for m in range(M):
            t[m] *= _curve(logit[m], weight[i])
        _add_row(numbers, codes, i, t, False, image[piece])


@kernel
def probabilities(low: int, high: int, numbers: Any, codes: Any, theta: Any, p: Any) -> None:
    """Write σ(x·θ_m) of some rows."""
    for i in range(low, high):
        _linear(numbers, codes, i, theta, p[i])
        for m in range(p.shape[1]):
            p[i, m] = sigmoid_of(p[i, m])
