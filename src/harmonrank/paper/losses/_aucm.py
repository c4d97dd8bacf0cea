"""AUC maximisation with a margin (Yuan et al., ICCV 2021), as a min-max problem and solved.

Normalisation: class means, 1/n⁺ and 1/n⁻. The paper multiplies everything by π(1−π), π the share of
positives, which changes no single objective's optimum but would let the prevalences reweight a sum
over objectives. Multiply `objective_weights` by π(1−π) for the paper's figures.
"""

__all__ = ["AucmSlope", "aucm_loss", "aucm_slope", "aucm_solved_loss"]

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.paper.losses._classes import class_moments
from harmonrank.paper.losses._inputs import check_inputs, check_positive, check_vector
from harmonrank.paper.losses._patterns import Patterns
from harmonrank.paper.losses._rank_sums import labels_of
from harmonrank.support.errors import UsageError

Vector = NDArray[np.float64]


def aucm_loss(
    scores: Tensor,
    labels: Tensor,
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
    the saddle a = μ⁺, b = μ⁻, α = [margin − Δμ]₊, and the value is `aucm_solved_loss`. Linear in
    the rows given α, so its batch gradients are unbiased, which those of the solved loss are not.

    An objective without a positive or a negative contributes nothing, to its a, b and α either.

    Args:
        scores: Fused scores, (rows,).
        labels: Labels in [0, 1], (rows, objectives), or (rows,) for one objective.
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
    margin = check_positive("margin", margin)
    objectives = len(inputs.objective_weights)
    a = check_vector("a", a, objectives, "objective", inputs.scores)
    b = check_vector("b", b, objectives, "objective", inputs.scores)
    alpha = check_vector("alpha", alpha, objectives, "objective", inputs.scores)
    if (alpha < 0).any():
        raise UsageError(
            f"`alpha` must not be negative. Got {alpha.min().item():g}; clamp it after each step."
        )
    moments = class_moments(inputs.scores, inputs.labels, inputs.sample_weight)
    # E(s−a)² = Var + (μ−a)²: the same moments serve every loss of this family.
    losses = (
        moments.variance_positive
        + (moments.mean_positive - a).square()
        + moments.variance_negative
        + (moments.mean_negative - b).square()
        + 2 * alpha * (margin - moments.mean_gap)
        - alpha.square()
    )
    return (inputs.objective_weights * moments.present) @ losses


def aucm_solved_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    margin: float = 1.0,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Σ_m w_m (Var⁺ + Var⁻ + [margin − Δμ]₊²): AUCM with a, b and α at their best on this batch.

    Differs from the pairwise square only beyond the margin, where it asks for nothing more.

    An objective without a positive or a negative contributes nothing.

    >>> import torch
    >>> scores = torch.tensor([3.0, 0.0, 1.0])
    >>> round(aucm_solved_loss(scores, torch.tensor([1, 0, 0])).item(), 6)  # Var⁻, as Δμ = 2.5
    0.25
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    margin = check_positive("margin", margin)
    moments = class_moments(inputs.scores, inputs.labels, inputs.sample_weight)
    shortfall = (margin - moments.mean_gap).clamp(min=0)
    losses = moments.variance_positive + moments.variance_negative + shortfall.square()
    return (inputs.objective_weights * moments.present) @ losses


class AucmSlope(NamedTuple):
    """What `aucm_slope` returns; the means are 0 for an objective that is not present."""

    loss: float
    slope: NDArray[np.float32]  # ∂L/∂s, (rows,)
    mean_positive: Vector  # (objectives,)
    mean_negative: Vector
    present: NDArray[np.bool_]

    @property
    def mean_gap(self) -> Vector:
        """Δμ = μ⁺ − μ⁻."""
        return self.mean_positive - self.mean_negative


def aucm_slope(
    scores: NDArray[np.float32],
    labels: Tensor | Patterns,
    objective_weights: Vector,
    *,
    a: Vector,
    b: Vector,
    alpha: Vector,
    margin: float = 1.0,
    sample_weight: Tensor | None = None,
) -> AucmSlope:
    """`aucm_loss` and the gradient that autograd finds of it.

    ∂L/∂s_i = Σ_m w_m 2 v_i [y_im (s_i − a − α)/W⁺ + (1 − y_im) (s_i − b + α)/W⁻]: of each row, a
    line in its score whose two coefficients depend on its label pattern alone.

    >>> import torch
    >>> zero, labels = np.zeros(1), Patterns.of(torch.tensor([[1], [0], [0]]))
    >>> found = aucm_slope(np.float32([0.5, 0, 0]), labels, np.ones(1), a=zero, b=zero, alpha=zero)
    >>> round(found.loss, 6), found.slope.tolist()
    (0.25, [1.0, 0.0, 0.0])
    """
    known = labels_of(labels)
    # Around the mean, as squares of scores far from zero would cancel.
    centre = float(scores.mean(dtype=np.float64)) if len(scores) else 0.0
    s, a, b = scores.astype(np.float64) - centre, a - centre, b - centre
    v = None if sample_weight is None else sample_weight.double().cpu().numpy()
    masses = known.mass(v)
    present = (masses[0] > 0) & (masses[1] > 0)
    w = np.where(present, objective_weights, 0.0)
    up, down = (np.divide(1, mass, out=np.zeros(len(w)), where=present) for mass in masses)
    vs = s if v is None else v * s
    first, second = known.sums(vs), known.sums(vs * s)
    mean_positive, mean_negative = first * up, (vs.sum() - first) * down
    losses = (
        second * up - 2 * a * mean_positive + a**2
        + ((vs * s).sum() - second) * down - 2 * b * mean_negative + b**2
        + 2 * alpha * (margin - mean_positive + mean_negative) - alpha**2
    )  # fmt: skip
    line = 2 * (known.spread(w * (up - down)) + w @ down)
    low = (b - alpha) * down
    level = 2 * (known.spread(w * (low - (a + alpha) * up)) - w @ low)
    slope = line * s + level if v is None else v * (line * s + level)
    above, below = (np.where(present, mu + centre, 0.0) for mu in (mean_positive, mean_negative))
    return AucmSlope(float(w @ losses), slope.astype(np.float32), above, below, present)
