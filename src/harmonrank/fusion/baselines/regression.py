"""Ridge logistic regressions of many labels on numbers and codes, fitted in parallel.

A fit needs only sums over the rows, so the rows may be in blocks of which one is in memory at a
time. The sums of blocks are added in order.
"""

__all__ = ["Design", "RidgeRows", "fit_ridge", "log_loss", "predict"]

from dataclasses import dataclass

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.fusion.baselines.ridge_kernels import (
    HESSIAN_PIECES,
    PIECES,
    add_hessian,
    add_image,
    add_values,
    probabilities,
)
from harmonrank.support.logistic import log_likelihoods
from harmonrank.support.newton import Likelihood, Step, maximise
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
        codes: (rows, features) positions in the table of coefficients, from 1 + K up; (1, features)
            where all rows share one.
        size: How many coefficients an objective has.
    """

    numbers: np.ndarray
    codes: np.ndarray
    size: int

    @classmethod
    def of(cls, numbers: np.ndarray, codes: np.ndarray, slots: tuple[int, ...]) -> "Design":
        """Lay out the coefficients: intercept, numbers, then the slots of each feature."""
        first = 1 + numbers.shape[1] + np.cumsum([0, *slots])
        positions = (codes + first[:-1]).astype(np.int32).reshape(len(codes), len(slots))
        return cls(np.ascontiguousarray(numbers, dtype=np.float64), positions, int(first[-1]))


@dataclass(frozen=True)
class RidgeRows(Design):
    """A block of rows with regressors and labels.

    Attributes:
        labels: (rows, objectives) of 0 and 1; as float64 also between them.
        weight: (rows,) the weight of each; None if all are equal.
        first: The place of the first one in the log.
    """

    labels: np.ndarray
    weight: np.ndarray | None
    first: int = 0

    @property
    def weights(self) -> np.ndarray:
        """The weight of each row."""
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
    losses: np.ndarray = -(weight @ log_likelihoods(p, labels)) / weight.sum()
    return losses


def fit_ridge(
    rows: Blocks[RidgeRows], decay: np.ndarray, start: np.ndarray, tolerance: float = 1e-5
) -> np.ndarray:
    """Return θ_m minimising Σ_i v_i logloss(y_im, σ(x_i·θ_m)) + ½ Σ_k λ_km θ_km², for each m.

    Newton steps, by conjugate gradients where the context has so many values that the matrix of
    second derivatives would be large. All objectives step in parallel and share the reading of the
    rows.

    Args:
        rows: Regressors, labels and weights v.
        decay: λ, how strongly each coefficient is pulled to 0, in rows, (size, objectives).
        start: (size, objectives), the first guess.
        tolerance: Gain per unit of weight that a last step may promise.

    >>> from harmonrank.data.rows.blocks import HeldBlocks
    >>> x, none = np.array([[-1.0], [-1.0], [1.0], [1.0]]), np.empty((4, 0), np.int32)
    >>> labels, design = np.array([[0], [1], [0], [1]], np.uint8), Design.of(x, none, ())
    >>> rows = HeldBlocks([RidgeRows(design.numbers, design.codes, design.size, labels, None)])
    >>> bool(np.abs(fit_ridge(rows, np.ones((2, 1)), np.full((2, 1), 0.5))).max() < 1e-3)
    True
    """
    mass, decays = 0.0, decay.T  # (objectives, size), as the solver has them

    def penalty(theta: np.ndarray) -> np.ndarray:
        lost: np.ndarray = 0.5 * (decays * theta**2).sum(axis=1)
        return lost

    def look(theta: np.ndarray) -> Likelihood:
        nonlocal mass
        value, slope, diagonal, mass = rows.total(_values, theta.T)
        return Likelihood(value, slope.T, diagonal.T)

    def propose(theta: np.ndarray, there: Likelihood) -> Step:
        slope = (there.slope - decays * theta).T
        if len(decay) <= _DENSE_SIZE:
            step = _solved(rows, theta.T, slope, decay)
        else:
            step = _conjugate_gradients(rows, theta.T, slope, there.curvature.T + decay, decay)
        # The error of a Newton step is of the square of what it promised to gain.
        return Step(theta + step.T, penalty, (slope * step).sum(axis=0) <= tolerance * mass)

    return maximise(look, start.T, propose, _NEWTON_STEPS).checked("A regression").theta.T


def _values(rows: RidgeRows, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return log-likelihood, gradient, curvature's diagonal and weight of a block."""
    theta, weight = theta.copy(), rows.weights  # as an engine hands over what is read-only
    value = np.zeros((PIECES, theta.shape[1]))
    slope, diagonal = np.zeros((2, PIECES, *theta.shape))

    given = rows.numbers, rows.codes, rows.labels, weight, theta, value, slope, diagonal
    each_part(lambda piece: add_values(piece, *given), PIECES)
    return value.sum(axis=0), slope.sum(axis=0), diagonal.sum(axis=0), float(weight.sum())


def _solved(
    rows: Blocks[RidgeRows], theta: np.ndarray, slope: np.ndarray, decay: np.ndarray
) -> np.ndarray:
    """Solve H_m x = slope_m for every objective, H the curvature at θ."""
    (upper,) = rows.total(_hessian, theta)
    step: np.ndarray = np.empty_like(slope)
    for m in range(slope.shape[1]):
        H = np.triu(upper[:, :, m]) + np.triu(upper[:, :, m], 1).T
        # A tiny ridge on all of it keeps a slot that no row has from being singular.
        step[:, m] = np.linalg.solve(H + np.diag(decay[:, m] + 1e-9), slope[:, m])
    return step


def _hessian(rows: RidgeRows, theta: np.ndarray) -> tuple[np.ndarray]:
    theta, weight = theta.copy(), rows.weights
    pieces = np.zeros((HESSIAN_PIECES, rows.size, rows.size, theta.shape[1]))

    given = rows.numbers, rows.codes, weight, theta, pieces
    each_part(lambda piece: add_hessian(piece, *given), HESSIAN_PIECES)
    return (pieces.sum(axis=0),)


def _conjugate_gradients(
    rows: Blocks[RidgeRows],
    theta: np.ndarray,
    slope: np.ndarray,
    diagonal: np.ndarray,
    decay: np.ndarray,
) -> np.ndarray:
    """Solve H_m x = slope_m well enough for a Newton step, scaled by the diagonal."""
    scale = 1 / np.maximum(diagonal, 1e-12)
    x, residual = np.zeros_like(slope), slope.copy()
    direction = scale * residual
    energy = (residual * direction).sum(axis=0)
    goal = 1e-5 * energy
    for _ in range(_SOLVER_STEPS):
        image = rows.total(_image, theta, direction)[0] + decay * direction
        share = energy / np.maximum((direction * image).sum(axis=0), 1e-300)
        x, residual = x + share * direction, residual - share * image
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

    given = rows.numbers, rows.codes, weight, theta, direction, image
    each_part(lambda piece: add_image(piece, *given), PIECES)
    return (image.sum(axis=0),)
