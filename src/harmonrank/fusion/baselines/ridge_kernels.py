"""The loops of ridge logistic regressions: sums over the rows of a block, in pieces."""

__all__ = ["HESSIAN_PIECES", "PIECES", "add_hessian", "add_image", "add_values", "probabilities"]

from typing import Any

import numpy as np

from harmonrank.support.kernel import inline_kernel, kernel

PIECES = 16
"""Sums of a block are taken in so many pieces whatever the threads: they do not depend on them."""

HESSIAN_PIECES = 4
"""The same for the matrix of second derivatives, of which each piece has its own."""


@inline_kernel
def _linear(numbers: Any, codes: Any, i: int, theta: Any, found: Any) -> None:
    """Set `found` to row i of Xθ, a number per objective."""
    for m in range(len(found)):
        found[m] = theta[0, m]
    for k in range(numbers.shape[1]):
        for m in range(len(found)):
            found[m] += numbers[i, k] * theta[1 + k, m]
    for c in range(codes.shape[1]):
        for m in range(len(found)):
            found[m] += theta[codes[i, c], m]


@inline_kernel
def _curve(logit: Any, weight: Any) -> Any:
    """Return v p(1−p), the curvature of a row's loss."""
    small = np.exp(-abs(logit))
    p = (1.0 if logit >= 0 else small) / (1.0 + small)
    return weight * p * (1.0 - p)


@kernel
def add_values(
    piece: int, numbers: Any, codes: Any, labels: Any, weight: Any, theta: Any, loss: Any,
    slope: Any, diagonal: Any,
) -> None:  # fmt: skip
    """Add a piece's loss, gradient and diagonal of the Hessian."""
    n, K = numbers.shape
    M = theta.shape[1]
    g, h, logit = np.empty(M), np.empty(M), np.empty(M)
    for i in range(piece * n // PIECES, (piece + 1) * n // PIECES):
        _linear(numbers, codes, i, theta, logit)
        for m in range(M):
            small = np.exp(-abs(logit[m]))
            p = (1.0 if logit[m] >= 0 else small) / (1.0 + small)
            away = max(logit[m], 0.0) - labels[i, m] * logit[m]
            loss[piece, m] += weight[i] * (np.log1p(small) + away)
            g[m] = weight[i] * (p - labels[i, m])
            h[m] = weight[i] * p * (1.0 - p)
            slope[piece, 0, m] += g[m]
            diagonal[piece, 0, m] += h[m]
        for k in range(K):
            x = numbers[i, k]
            for m in range(M):
                slope[piece, 1 + k, m] += x * g[m]
                diagonal[piece, 1 + k, m] += x * x * h[m]
        for c in range(codes.shape[1]):
            for m in range(M):
                slope[piece, codes[i, c], m] += g[m]
                diagonal[piece, codes[i, c], m] += h[m]


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
    """Add a piece's share of the Hessian's product with a direction."""
    n, K = numbers.shape
    M = direction.shape[1]
    t, logit = np.empty(M), np.empty(M)
    for i in range(piece * n // PIECES, (piece + 1) * n // PIECES):
        _linear(numbers, codes, i, theta, logit)
        _linear(numbers, codes, i, direction, t)
        for m in range(M):
            t[m] *= _curve(logit[m], weight[i])
            image[piece, 0, m] += t[m]
        for k in range(K):
            for m in range(M):
                image[piece, 1 + k, m] += numbers[i, k] * t[m]
        for c in range(codes.shape[1]):
            for m in range(M):
                image[piece, codes[i, c], m] += t[m]


@kernel
def probabilities(low: int, high: int, numbers: Any, codes: Any, theta: Any, p: Any) -> None:
    """Write σ(x·θ_m) of some rows."""
    K, M = numbers.shape[1], theta.shape[1]
    for i in range(low, high):
        for m in range(M):
            logit = theta[0, m]
            for k in range(K):
                logit += numbers[i, k] * theta[1 + k, m]
            for c in range(codes.shape[1]):
                logit += theta[codes[i, c], m]
            small = np.exp(-abs(logit))
            p[i, m] = (1.0 if logit >= 0 else small) / (1.0 + small)
