"""Ridge logistic regressions of many labels on numbers and codes, fitted together.

All that is asked of the rows are sums, so they may be in blocks of which one at a time is in
memory; the sums of blocks are added in their order.
"""

__all__ = ["Design", "RidgeRows", "fit_ridge", "fit_ridge_blocks", "log_loss", "predict"]

from dataclasses import dataclass

import numpy as np

from harmonrank.data.rows.blocks import Blocks, HeldBlocks
from harmonrank.fusion.baselines.ridge_kernels import (
    HESSIAN_PIECES,
    PIECES,
    add_hessian,
    add_image,
    add_values,
    probabilities,
)
from harmonrank.support.parallel import each_part, edges_of

_NEWTON_STEPS = 50
_SOLVER_STEPS = 60
# Up to this many coefficients the matrix of second derivatives is built and inverted.
_DENSE_SIZE = 400
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


@dataclass(frozen=True)
class RidgeRows(Design):
    """A block of rows of which regressors and labels are known.

    Attributes:
        labels: (rows, objectives) of 0 and 1; as float64 also between them.
        weight: (rows,) what each counts; None if all count the same.
        first: The place of the first one in the log.
    """

    labels: np.ndarray
    weight: np.ndarray | None
    first: int = 0

    @property
    def weights(self) -> np.ndarray:
        """What each row counts."""
        return np.ones(len(self.numbers)) if self.weight is None else self.weight


def predict(design: Design, theta: np.ndarray) -> np.ndarray:
    """Return σ(x·θ_m) for (size, objectives) coefficients, (rows, objectives)."""
    numbers, codes = design.numbers, design.codes
    p = np.empty((len(numbers), theta.shape[1]))
    edges = edges_of(len(p), _PREDICTED_ROWS)

    def work(part: int) -> None:
        probabilities(edges[part], edges[part + 1], numbers, codes, theta, p)

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
    kind = None if labels.dtype == np.float64 else np.uint8
    known = np.ascontiguousarray(labels, dtype=kind)
    rows = RidgeRows(design.numbers, design.codes, design.size, known, weight)
    return fit_ridge_blocks(HeldBlocks([rows]), decay, start, tolerance)


def fit_ridge_blocks(
    rows: Blocks[RidgeRows], decay: np.ndarray, start: np.ndarray, tolerance: float = 1e-5
) -> np.ndarray:
    """Return the coefficients of `fit_ridge`, of rows in blocks."""
    theta = start.copy()
    loss, slope, diagonal, mass = _objective(rows, theta, decay)
    for _ in range(_NEWTON_STEPS):
        step = _newton(rows, theta, diagonal, slope, decay)
        promise = (slope * step).sum(axis=0)
        share = np.ones(theta.shape[1])
        while True:
            new = _objective(rows, theta - share * step, decay)
            # Newton may overshoot where probabilities are tiny; half steps always come down.
            worse = new[0] > loss + 1e-10 * np.abs(loss)
            if not worse.any() or share.min() < 1e-6:
                break
            share[worse] /= 2
        theta = theta - share * step
        loss, slope, diagonal, _ = new
        # The error of a Newton step is of the square of what it promised to gain.
        if (promise <= tolerance * mass).all():
            break
    return theta


def _objective(
    rows: Blocks[RidgeRows], theta: np.ndarray, decay: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return loss, gradient, the diagonal of the Hessian, and the weight of all rows."""
    loss, slope, diagonal, mass = rows.total(_values, theta)
    loss = loss + 0.5 * (decay * theta**2).sum(axis=0)
    return loss, slope + decay * theta, diagonal + decay, mass


def _values(rows: RidgeRows, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return the loss of a block, its gradient, the Hessian's diagonal and the rows' weight."""
    theta, weight = theta.copy(), rows.weights  # as an engine hands over what is read-only
    loss = np.zeros((PIECES, theta.shape[1]))
    slope, diagonal = np.zeros((2, PIECES, *theta.shape))

    def work(piece: int) -> None:
        given = rows.numbers, rows.codes, rows.labels, weight, theta
        add_values(piece, *given, loss, slope, diagonal)

    each_part(work, PIECES)
    return loss.sum(axis=0), slope.sum(axis=0), diagonal.sum(axis=0), float(weight.sum())


def _newton(
    rows: Blocks[RidgeRows],
    theta: np.ndarray,
    diagonal: np.ndarray,
    slope: np.ndarray,
    decay: np.ndarray,
) -> np.ndarray:
    """Solve H_m x = slope_m for every objective, H the Hessian at θ."""
    if len(theta) > _DENSE_SIZE:
        return _conjugate_gradients(rows, theta, diagonal, slope, decay)
    (upper,) = rows.total(_hessian, theta)
    # A tiny ridge on all of it keeps a slot that no row has from being singular.
    step: np.ndarray = np.empty_like(slope)
    for m in range(slope.shape[1]):
        H = np.triu(upper[:, :, m]) + np.triu(upper[:, :, m], 1).T
        step[:, m] = np.linalg.solve(H + np.diag(decay[:, m] + 1e-9), slope[:, m])
    return step


def _hessian(rows: RidgeRows, theta: np.ndarray) -> tuple[np.ndarray]:
    theta, weight = theta.copy(), rows.weights
    pieces = np.zeros((HESSIAN_PIECES, rows.size, rows.size, theta.shape[1]))

    def work(piece: int) -> None:
        add_hessian(piece, rows.numbers, rows.codes, weight, theta, pieces)

    each_part(work, HESSIAN_PIECES)
    return (pieces.sum(axis=0),)


def _conjugate_gradients(
    rows: Blocks[RidgeRows],
    theta: np.ndarray,
    diagonal: np.ndarray,
    slope: np.ndarray,
    decay: np.ndarray,
) -> np.ndarray:
    """Solve H_m x = slope_m well enough for a Newton step, scaled by the diagonal."""
    scale = 1 / np.maximum(diagonal, 1e-12)
    x, residual = np.zeros_like(slope), slope.copy()
    z = scale * residual
    direction, energy = z, (residual * z).sum(axis=0)
    goal = 1e-5 * energy
    for _ in range(_SOLVER_STEPS):
        image = rows.total(_image, theta, direction)[0] + decay * direction
        along = np.maximum((direction * image).sum(axis=0), 1e-300)
        x = x + (energy / along) * direction
        residual = residual - (energy / along) * image
        z = scale * residual
        previous, energy = energy, (residual * z).sum(axis=0)
        if (energy <= goal).all():
            break
        direction = z + (energy / np.maximum(previous, 1e-300)) * direction
    return x


def _image(rows: RidgeRows, theta: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray]:
    """Return Xᵀ(v p(1−p) · X d_m), the Hessian's product with a direction."""
    theta, direction, weight = theta.copy(), direction.copy(), rows.weights
    image = np.zeros((PIECES, *direction.shape))

    def work(piece: int) -> None:
        add_image(piece, rows.numbers, rows.codes, weight, theta, direction, image)

    each_part(work, PIECES)
    return (image.sum(axis=0),)
