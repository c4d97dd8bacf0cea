"""Ridge logistic regressions of many labels on numbers and codes, fitted together."""

__all__ = ["Design", "fit_ridge", "log_loss", "predict"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.kernel import inline_kernel, kernel
from harmonrank.together import each_part, edges_of

# Sums are taken in this many pieces whatever the threads, so they do not depend on them.
_PIECES = 16
_NEWTON_STEPS = 50
_SOLVER_STEPS = 60
# Up to this many coefficients the matrix of second derivatives is built and inverted.
_DENSE_SIZE = 400
_DENSE_PIECES = 4
_PREDICTED_ROWS = 4096  # A request's rows are one part.


@dataclass(frozen=True)
class Design:
    """The regressors of each row: a one, some numbers, and one indicator per code.

    Attributes:
        numbers: (rows, K) float64.
        codes: (rows, features) positions in the table of coefficients, from 1 + K up.
        size: How many coefficients an objective has.
    """

    numbers: np.ndarray
    codes: np.ndarray
    size: int

    @classmethod
    def of(cls, numbers: np.ndarray, codes: np.ndarray, slots: tuple[int, ...]) -> "Design":
        """Lay out the coefficients: intercept, numbers, then the slots of each feature."""
        first = 1 + numbers.shape[1] + np.cumsum([0, *slots])
        places = (codes + first[:-1]).astype(np.int32).reshape(len(numbers), len(slots))
        return cls(np.ascontiguousarray(numbers, dtype=np.float64), places, int(first[-1]))


def predict(design: Design, theta: np.ndarray) -> np.ndarray:
    """Return σ(x·θ_m) for (size, objectives) coefficients, (rows, objectives)."""
    numbers, codes = design.numbers, design.codes
    p = np.empty((len(numbers), theta.shape[1]))
    edges = edges_of(len(p), _PREDICTED_ROWS)

    def work(part: int) -> None:
        _probabilities(edges[part], edges[part + 1], numbers, codes, theta, p)

    each_part(work, len(edges) - 1)
    return p


def log_loss(p: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the mean log loss of each objective.

    >>> log_loss(np.array([[0.5], [0.5]]), np.array([[1], [0]]), np.ones(2)).round(4)
    array([0.6931])
    """
    if labels.dtype.kind == "f":
        near = np.clip(p, 1e-300, 1 - 1e-16)
        gains = labels * np.log(near) + (1 - labels) * np.log1p(-near)
        return np.asarray(-(weight @ gains) / weight.sum())
    right = np.where(labels > 0, p, 1 - p)
    losses: np.ndarray = -(weight @ np.log(np.maximum(right, 1e-300))) / weight.sum()
    return losses


def fit_ridge(
    design: Design,
    labels: np.ndarray,
    weight: np.ndarray,
    decay: np.ndarray,
    start: np.ndarray,
    tolerance: float = 1e-5,
) -> np.ndarray:
    """Return θ_m minimising Σ_i v_i logloss(y_im, σ(x_i·θ_m)) + ½ Σ_k λ_km θ_km², for each m.

    Newton steps, by conjugate gradients where the context has so
    many values that the matrix of second derivatives would be large. All objectives step together
    and share the reading of the rows.

    Args:
        design: The regressors.
        labels: (rows, objectives) of 0 and 1; as float64 also between them.
        weight: v, (rows,).
        decay: λ, how strongly each coefficient is pulled to 0, in rows, (size, objectives).
        start: (size, objectives), the first guess.
        tolerance: Gain per unit of weight that a last step may promise.

    >>> x = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    >>> design = Design.of(x, np.empty((4, 0), np.int32), ())
    >>> labels, even = np.array([[0], [1], [0], [1]]), np.zeros((2, 1))
    >>> theta = fit_ridge(design, labels, np.ones(4), np.ones((2, 1)), even)
    >>> bool(np.abs(theta).max() < 1e-6)
    True
    """
    theta = start.copy()
    labels = np.ascontiguousarray(labels, dtype=None if labels.dtype == np.float64 else np.uint8)
    loss, slope, curve, diagonal = _objective(design, labels, weight, theta, decay)
    for _ in range(_NEWTON_STEPS):
        step = _newton(design, curve, diagonal, slope, decay)
        promise = (slope * step).sum(axis=0)
        share = np.ones(theta.shape[1])
        while True:
            new = _objective(design, labels, weight, theta - share * step, decay)
            # Newton may overshoot where probabilities are tiny; half steps always come down.
            worse = new[0] > loss + 1e-10 * np.abs(loss)
            if not worse.any() or share.min() < 1e-6:
                break
            share[worse] /= 2
        theta = theta - share * step
        loss, slope, curve, diagonal = new
        # The error of a Newton step is of the square of what it promised to gain.
        if (promise <= tolerance * weight.sum()).all():
            break
    return theta


def _objective(
    design: Design, labels: np.ndarray, weight: np.ndarray, theta: np.ndarray, decay: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return loss, gradient, each row's curvature v p(1−p) and the diagonal of the Hessian."""
    numbers, codes = design.numbers, design.codes
    loss = np.zeros((_PIECES, theta.shape[1]))
    slope, diagonal = np.zeros((2, _PIECES, *theta.shape))
    curve = np.empty((len(numbers), theta.shape[1]))

    def work(piece: int) -> None:
        _sweep(piece, numbers, codes, labels, weight, theta, loss, slope, curve, diagonal)

    each_part(work, _PIECES)
    return (
        loss.sum(axis=0) + 0.5 * (decay * theta**2).sum(axis=0),
        slope.sum(axis=0) + decay * theta,
        curve,
        diagonal.sum(axis=0) + decay,
    )


def _newton(
    design: Design, curve: np.ndarray, diagonal: np.ndarray, slope: np.ndarray, decay: np.ndarray
) -> np.ndarray:
    """Solve H_m x = slope_m for every objective."""
    if design.size > _DENSE_SIZE:
        return _conjugate_gradients(design, curve, diagonal, slope, decay)
    pieces = np.zeros((_DENSE_PIECES, design.size, design.size, slope.shape[1]))
    each_part(
        lambda piece: _hessian(piece, design.numbers, design.codes, curve, pieces), _DENSE_PIECES
    )
    upper = pieces.sum(axis=0)
    # A tiny ridge on all of it keeps a slot that no row has from being singular.
    step: np.ndarray = np.empty_like(slope)
    for m in range(slope.shape[1]):
        H = np.triu(upper[:, :, m]) + np.triu(upper[:, :, m], 1).T
        step[:, m] = np.linalg.solve(H + np.diag(decay[:, m] + 1e-9), slope[:, m])
    return step


def _conjugate_gradients(
    design: Design, curve: np.ndarray, diagonal: np.ndarray, slope: np.ndarray, decay: np.ndarray
) -> np.ndarray:
    """Solve H_m x = slope_m well enough for a Newton step, scaled by the diagonal."""
    scale = 1 / np.maximum(diagonal, 1e-12)
    x, residual = np.zeros_like(slope), slope.copy()
    z = scale * residual
    direction, energy = z, (residual * z).sum(axis=0)
    goal = 1e-5 * energy
    for _ in range(_SOLVER_STEPS):
        image = _image(design, curve, direction) + decay * direction
        along = np.maximum((direction * image).sum(axis=0), 1e-300)
        x = x + (energy / along) * direction
        residual = residual - (energy / along) * image
        z = scale * residual
        previous, energy = energy, (residual * z).sum(axis=0)
        if (energy <= goal).all():
            break
        direction = z + (energy / np.maximum(previous, 1e-300)) * direction
    return x


def _image(design: Design, curve: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return Xᵀ(curve_m · X d_m), the Hessian's product with a direction."""
    image = np.zeros((_PIECES, *direction.shape))
    each_part(
        lambda piece: _product(piece, design.numbers, design.codes, curve, direction, image),
        _PIECES,
    )
    total: np.ndarray = image.sum(axis=0)
    return total


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


@kernel
def _sweep(
    piece: int, numbers: Any, codes: Any, labels: Any, weight: Any, theta: Any, loss: Any,
    slope: Any, curve: Any, diagonal: Any,
) -> None:  # fmt: skip
    """Add a piece's loss, gradient and diagonal of the Hessian; write its rows' v p(1−p)."""
    n, K = numbers.shape
    M = theta.shape[1]
    g, h, logit = np.empty(M), np.empty(M), np.empty(M)
    for i in range(piece * n // _PIECES, (piece + 1) * n // _PIECES):
        _linear(numbers, codes, i, theta, logit)
        for m in range(M):
            small = np.exp(-abs(logit[m]))
            p = (1.0 if logit[m] >= 0 else small) / (1.0 + small)
            away = max(logit[m], 0.0) - labels[i, m] * logit[m]
            loss[piece, m] += weight[i] * (np.log1p(small) + away)
            g[m] = weight[i] * (p - labels[i, m])
            h[m] = weight[i] * p * (1.0 - p)
            curve[i, m] = h[m]
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
def _hessian(piece: int, numbers: Any, codes: Any, curve: Any, upper: Any) -> None:
    """Add a piece's upper half of Xᵀ diag(curve_m) X, (size, size, objectives)."""
    n, K = numbers.shape
    M, C = curve.shape[1], codes.shape[1]
    place, value = np.arange(1 + K + C), np.ones(1 + K + C)
    for i in range(piece * n // _DENSE_PIECES, (piece + 1) * n // _DENSE_PIECES):
        value[1 : 1 + K] = numbers[i]
        for c in range(C):
            place[1 + K + c] = codes[i, c]
        for a in range(1 + K + C):
            for b in range(a, 1 + K + C):
                both = value[a] * value[b]
                for m in range(M):
                    upper[piece, place[a], place[b], m] += both * curve[i, m]


@kernel
def _product(piece: int, numbers: Any, codes: Any, curve: Any, direction: Any, image: Any) -> None:
    """Add a piece's share of `_image`."""
    n, K = numbers.shape
    M = direction.shape[1]
    t = np.empty(M)
    for i in range(piece * n // _PIECES, (piece + 1) * n // _PIECES):
        _linear(numbers, codes, i, direction, t)
        for m in range(M):
            t[m] *= curve[i, m]
            image[piece, 0, m] += t[m]
        for k in range(K):
            for m in range(M):
                image[piece, 1 + k, m] += numbers[i, k] * t[m]
        for c in range(codes.shape[1]):
            for m in range(M):
                image[piece, codes[i, c], m] += t[m]


@kernel
def _probabilities(low: int, high: int, numbers: Any, codes: Any, theta: Any, p: Any) -> None:
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
