"""Squares of score differences: the pairwise square, and AUC maximisation with a margin.

AUCM (Yuan et al., ICCV 2021) is a min-max problem over three numbers per objective, and the
pairwise square is its value at the saddle, so that one function serves both.

Normalisation: class means, 1/n⁺ and 1/n⁻. The paper multiplies everything by π(1−π), π the share of
positives, which changes no single objective's optimum but would let the prevalences reweight a sum
over objectives. Multiply `objective_weights` by π(1−π) for the paper's figures.
"""

__all__ = ["AucmParts", "aucm_loss", "aucm_parts", "pairwise_square_loss"]

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.paper.losses._gradient import with_gradient
from harmonrank.paper.losses._inputs import LossInputs, check_inputs, check_positive, check_vector
from harmonrank.paper.losses._labels import Patterns
from harmonrank.support.errors import UsageError

Vector = NDArray[np.float64]


class AucmParts(NamedTuple):
    """The loss, and the class means of each objective, 0 for one that is not present."""

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
    """Return `aucm_loss` with the class means, which tell where a, b and α are at their best."""
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
    """The sums over the rows of a batch of which its squares are made.

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
