"""The square loss over all positive-negative pairs, by the moments of the classes."""

__all__ = ["pairwise_square_loss"]

from torch import Tensor

from harmonrank.paper.losses._classes import class_moments
from harmonrank.paper.losses._inputs import check_inputs, check_positive


def pairwise_square_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    margin: float = 1.0,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Σ_m w_m · mean over pairs of (margin − (s_i − s_j))², in O(rows · objectives).

    This is eq. 6 of docs/network.md. The mean over all n⁺n⁻ pairs is exactly
    (margin − Δμ)² + Var⁺ + Var⁻, with Δμ = μ⁺ − μ⁻ the gap of the class means and population
    variances within the classes.

    An objective without a positive or a negative contributes nothing. Sample weights multiply: the
    pair (i, j) weighs v_i v_j.

    >>> import torch
    >>> scores = torch.tensor([2.0, 0.0, 1.0])
    >>> pairwise_square_loss(scores, torch.tensor([1, 0, 0])).item()  # (1−2)²/2 + (1−1)²/2
    0.5
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    margin = check_positive("margin", margin)
    moments = class_moments(inputs.scores, inputs.labels, inputs.sample_weight)
    losses = (
        (margin - moments.mean_gap).square() + moments.variance_positive + moments.variance_negative
    )
    return (inputs.objective_weights * moments.present) @ losses
