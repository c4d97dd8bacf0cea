"""Losses over all pairs of a positive and a negative, computed without visiting the pairs.

AUCM (Yuan et al., ICCV 2021) is a min-max problem over three numbers per objective. The pairwise
square is its value at the saddle point, so one class computes both. The logistic loss of pairs is
computed on a grid of scores.

Losses are normalised by class means, 1/n⁺ and 1/n⁻. The paper of AUCM multiplies by π(1−π), π the
share of positives. That changes no single objective's optimum, but would weight a sum over
objectives by prevalence. Multiply `objective_weights` by π(1−π) to get its values.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.paper.losses._inputs import (
    LossInputs,
    check_inputs,
    check_positive,
    check_vector,
    with_gradient,
)
from harmonrank.paper.losses._labels import Patterns
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel
from harmonrank.support.logistic import sigmoid_and_loss

Vector = NDArray[np.float64]

# 12 nodes an eighth apart: f has its nearest pole at distance π, so that interpolation leaves
# an error of (1/8π)^12 times some thousands, which is little more than rounding.
_STEP = 0.125

_NODES = 12
_WIDEST = 64.0


class AucmParts(NamedTuple):
    """The loss, and the class means of each objective; 0 for an absent objective."""

    loss: Tensor
    slope: Vector  # ∂L/∂s, (rows,), which is computed with the loss
    mean_positive: Vector  # (objectives,)
    mean_negative: Vector
    present: NDArray[np.bool_]  # has both a positive and a negative


def aucm_loss(
    scores: Tensor,
    labels: Tensor | Patterns,
    a: Tensor,
    b: Tensor,
    alpha: Tensor,
    *,
    margin: float = 1.0,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Return Σ_m w_m [E⁺(s−a)² + E⁻(s−b)² + 2α(margin − μ⁺ + μ⁻) − α²].

    This is eq. 8 of docs/network.md, to be minimised over the scores, a and b, and maximised over
    α ≥ 0: negate the gradient of `alpha` before an optimiser step and clamp it at zero after. At
    the saddle a = μ⁺, b = μ⁻, α = [margin − Δμ]₊, and the value is Var⁺ + Var⁻ + [margin − Δμ]₊².
    Linear in the rows given α, so its batch gradients are unbiased.

    An objective without a positive or a negative contributes nothing, to its a, b and α either.

    Args:
        scores: Fused scores, (rows,).
        labels: Labels in [0, 1], (rows, objectives), or (rows,) for one objective; or `Patterns`.
        a: Centre of the positives' scores, (objectives,).
        b: Centre of the negatives' scores, (objectives,).
        alpha: Dual variable, (objectives,), not negative.
        margin: Gap of the class means beyond which nothing more is asked.
        objective_weights: w, (objectives,); ones by default.
        sample_weight: Row weights, (rows,); ones by default.

    >>> import torch
    >>> scores, labels = torch.tensor([0.5, 0.0, 0.0]), torch.tensor([1, 0, 0])
    >>> a, b, alpha = torch.tensor([0.5]), torch.tensor([0.0]), torch.tensor([0.5])
    >>> aucm_loss(scores, labels, a, b, alpha).item()  # [1 − 0.5]₊²
    0.25
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    return aucm_parts(inputs, a, b, alpha, margin).loss


def aucm_parts(
    inputs: LossInputs, a: Tensor, b: Tensor, alpha: Tensor, margin: float = 1.0
) -> AucmParts:
    """Return `aucm_loss` with the class means, which give the best a, b and α."""
    margin, objectives = check_positive("margin", margin), inputs.labels.shape[1]
    inner = [
        check_vector(name, value, objectives, "objective", inputs.scores)
        for name, value in (("a", a), ("b", b), ("alpha", alpha))
    ]
    if (inner[2] < 0).any():
        lowest = inner[2].min().item()
        raise UsageError(f"`alpha` must not be negative. Got {lowest:g}; clamp it after each step.")
    squares = _Squares(inputs, margin)
    loss = squares.loss(*(value.detach().cpu().numpy() for value in inner))
    for value, slope in zip(inner, squares.inner_slopes, strict=True):
        if value.requires_grad:
            loss = loss + with_gradient(value, 0.0, slope)
    above, below = (np.where(squares.present, mu, 0.0) for mu in squares.means)
    return AucmParts(loss, squares.slope, above, below, squares.present)


def pairwise_square_loss(
    scores: Tensor,
    labels: Tensor | Patterns,
    *,
    margin: float = 1.0,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Σ_m w_m · mean over pairs of (margin − (s_i − s_j))², in O(rows · objectives).

    This is eq. 6 of docs/network.md. The mean over all n⁺n⁻ pairs is exactly
    (margin − Δμ)² + Var⁺ + Var⁻, with Δμ = μ⁺ − μ⁻ the gap of the class means and population
    variances within the classes: AUCM where a, b and α, of any sign, are at their best.

    An objective without a positive or a negative contributes nothing. Sample weights multiply: the
    pair (i, j) weighs v_i v_j.

    >>> import torch
    >>> scores = torch.tensor([2.0, 0.0, 1.0])
    >>> pairwise_square_loss(scores, torch.tensor([1, 0, 0])).item()  # (1−2)²/2 + (1−1)²/2
    0.5
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    squares = _Squares(inputs, check_positive("margin", margin))
    mean_positive, mean_negative = squares.means
    # There the gradient by a, b and α is zero, so that they count as constants.
    return squares.loss(
        mean_positive, mean_negative, squares.margin - mean_positive + mean_negative
    )


class _Squares:
    """The sums over the rows of a batch that AUCM and the pairwise square need.

    Attributes:
        means: μ⁺ and μ⁻, (objectives,) each.
        present: Which objectives have both a positive and a negative.
        slope, inner_slopes: After `loss`, its gradient by the scores, and by a, b and α.
    """

    def __init__(self, inputs: LossInputs, margin: float) -> None:
        self._inputs, self.margin = inputs, margin
        s, w, v = inputs.host
        # Around the mean, as squares of scores far from zero would cancel.
        self._centre = float(s.mean()) if len(s) else 0.0
        self._s, self._v, known = s - self._centre, v, inputs.labels
        masses = known.mass(v)
        self.present = (masses[0] > 0) & (masses[1] > 0)
        self._w = np.where(self.present, w, 0.0)
        self._up, self._down = (
            np.divide(1, mass, out=np.zeros(len(w)), where=self.present) for mass in masses
        )
        vs = self._s if v is None else v * self._s
        first, second = known.sums(vs), known.sums(vs * self._s)
        self._means = first * self._up, (vs.sum() - first) * self._down
        self._squares = second * self._up, ((vs * self._s).sum() - second) * self._down
        self.means = self._means[0] + self._centre, self._means[1] + self._centre

    def loss(self, a: Vector, b: Vector, alpha: Vector) -> Tensor:
        """Return the loss at a, b and α, differentiable in the scores.

        ∂L/∂s_i = Σ_m w_m 2 v_i [y_im (s_i − a − α)/W⁺ + (1 − y_im) (s_i − b + α)/W⁻]: of each row,
        a line in its score whose two coefficients depend on its label pattern alone.
        """
        a, b, w, known = a - self._centre, b - self._centre, self._w, self._inputs.labels
        up, down, (above, below) = self._up, self._down, self._means
        gap = self.margin - above + below
        losses = (
            self._squares[0] - 2 * a * above + a**2
            + self._squares[1] - 2 * b * below + b**2
            + 2 * alpha * gap - alpha**2
        )  # fmt: skip
        self.inner_slopes = 2 * w * (a - above), 2 * w * (b - below), 2 * w * (gap - alpha)
        line = 2 * (known.spread(w * (up - down)) + w @ down)
        low = (b - alpha) * down
        level = 2 * (known.spread(w * (low - (a + alpha) * up)) - w @ low)
        slope = line * self._s + level
        self.slope = slope if self._v is None else self._v * slope
        return with_gradient(self._inputs.scores, float(w @ losses), self.slope)


def pairwise_logistic_loss(
    scores: Tensor,
    labels: Tensor | Patterns,
    *,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Σ_m w_m · mean over pairs of log(1 + exp(−(s_i − s_j))), without visiting the pairs.

    This is eq. 7 of docs/network.md. The loss of a pair is a smooth function of two scores, so
    every row is replaced by weights on the 12 nodes of an even grid around its score, from which
    polynomials of degree 11 give the same sums to 1e-12 of the largest. Classes then meet on the
    grid, eq. 19 of docs/kernels.md: some hundred nodes each, however many rows, so the cost is
    O(rows · objectives). Where scores lie more than 64 apart, all pairs are visited after all.

    An objective without a positive or a negative contributes nothing. Sample weights multiply: the
    pair (i, j) weighs v_i v_j. The arithmetic is float64 on the CPU; only the gradient, one number
    per row, is kept for the backward pass.

    >>> import torch
    >>> scores = torch.tensor([1.0, 1.0, 1.0])
    >>> round(pairwise_logistic_loss(scores, torch.tensor([1, 0, 0])).item(), 6)  # log 2
    0.693147
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    given = _host_arrays(inputs)
    narrow = len(given[0]) > 0 and np.ptp(given[0]) <= _WIDEST
    return with_gradient(inputs.scores, *(_by_grid if narrow else _by_pairs)(*given))


def _by_grid(
    s: np.ndarray, y: np.ndarray, v: np.ndarray, scale: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the loss and its gradient, the classes meeting on a grid."""
    first = s.min() - _STEP * (_NODES // 2 - 1)
    size = int((s.max() - first) / _STEP) + _NODES // 2 + 1
    node, share = _shares(s, first)
    positive, negative = _weights_of_nodes(node, share, y, v, size)  # (M, size)
    value, slope = _curves(size)
    loss = scale @ np.einsum("mk,mk->m", positive @ value, negative)
    # Per unit of a positive and of a negative at each node.
    rise, fall = negative @ slope.T, positive @ slope
    return float(loss), _gather(node, share, y, v, scale[:, None] * (rise + fall), scale @ fall)


def _host_arrays(inputs: LossInputs) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, labels, row weights and the weight of a pair of each objective, w/(W⁺W⁻).

    Pairs of an absent objective have weight 0.
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

    The score lies between the two nodes in the middle, where interpolation is most accurate.
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
def _weights_of_nodes(node: Any, share: Any, y: Any, v: Any, size: int) -> Any:
    """Return the weight at each node of every objective's positives and negatives.

    Most rows are negatives of all objectives and are added once. A difference of sums would lose
    small terms beside a heavy row.
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


@kernel
def _by_pairs(s: Any, y: Any, v: Any, scale: Any) -> Any:
    """Return the loss and its gradient, all pairs being visited."""
    loss, gradient = 0.0, np.zeros(s.size)
    for m in range(y.shape[1]):
        for i in range(s.size):
            if y[i, m] == 0 or scale[m] == 0:
                continue
            for j in range(s.size):
                both = scale[m] * v[i] * y[i, m] * v[j] * (1 - y[j, m])
                slope, lost = sigmoid_and_loss(s[j] - s[i], 0.0)
                loss += both * lost
                gradient[i] -= both * slope
                gradient[j] += both * slope
    return loss, gradient
