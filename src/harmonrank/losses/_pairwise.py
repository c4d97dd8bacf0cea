"""AUC surrogates that average a function of s_i − s_j over positive-negative pairs."""

__all__ = ["pairwise_logistic_loss", "pairwise_square_loss"]

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from harmonrank.errors import UsageError
from harmonrank.losses._classes import Classes, class_moments, class_shares
from harmonrank.losses._gradient import with_gradient
from harmonrank.losses._inputs import check_inputs, check_positive


def pairwise_square_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    margin: float = 1.0,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Σ_m w_m · mean over pairs of (margin − (s_i − s_j))², in O(rows · objectives).

    The mean over all n⁺n⁻ pairs is exactly (margin − Δμ)² + Var⁺ + Var⁻, with Δμ = μ⁺ − μ⁻ the gap
    of the class means and population variances within the classes.

    An objective without a positive or a negative contributes nothing. Sample weights multiply: the
    pair (i, j) weighs v_i v_j.

    >>> scores = torch.tensor([2.0, 0.0, 1.0])
    >>> pairwise_square_loss(scores, torch.tensor([1, 0, 0])).item()  # (1−2)²/2 + (1−1)²/2
    0.5
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    margin = check_positive("margin", margin)
    classes = class_shares(inputs.labels, inputs.sample_weight)
    moments = class_moments(inputs.scores, classes)
    losses = (
        (margin - moments.mean_gap).square() + moments.variance_positive + moments.variance_negative
    )
    return (inputs.objective_weights * classes.present) @ losses


def pairwise_logistic_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
    block_size: int = 1 << 18,
) -> Tensor:
    """Σ_m w_m · mean over pairs of log(1 + exp(−(s_i − s_j))).

    All n⁺n⁻ pairs are visited, `block_size` of them at a time: value and gradient come from one
    sweep, and only the gradient, one number per row, is kept for the backward pass. Pairs are
    formed in float32, or in float64 if the scores are float64.

    An objective without a positive or a negative contributes nothing. Sample weights multiply: the
    pair (i, j) weighs v_i v_j.

    >>> scores = torch.tensor([1.0, 1.0, 1.0])
    >>> round(pairwise_logistic_loss(scores, torch.tensor([1, 0, 0])).item(), 6)  # log 2
    0.693147
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    if block_size < 1:
        raise UsageError(f"`block_size` must be at least 1. Got {block_size}.")
    classes = class_shares(inputs.labels, inputs.sample_weight)
    with torch.no_grad():
        pair_dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
        loss, gradient = _logistic_sweep(
            inputs.scores.to(pair_dtype), classes, inputs.objective_weights, block_size
        )
    return with_gradient(inputs.scores, loss, gradient)


def _logistic_sweep(
    scores: Tensor, classes: Classes, objective_weights: Tensor, block_size: int
) -> tuple[Tensor, Tensor]:
    """Return the loss and its gradient, summed over the objectives in float64."""
    loss = scores.new_zeros((), dtype=torch.float64)
    gradient = scores.new_zeros(len(scores), dtype=torch.float64)
    for m in classes.present.nonzero().flatten().tolist():
        w = objective_weights[m]
        positive = classes.positive[:, m].nonzero().flatten()
        negative = classes.negative[:, m].nonzero().flatten()
        p = classes.positive[positive, m]
        q = classes.negative[negative, m]
        columns = min(len(negative), block_size)
        rows = max(1, block_size // columns)
        for i, p_i in _blocks(rows, positive, p):
            for j, q_j in _blocks(columns, negative, q):
                losses, slope_i, slope_j = _logistic_block(scores[i], scores[j], p_i, q_j)
                loss += w * losses
                gradient.index_add_(0, i, -w * slope_i)
                gradient.index_add_(0, j, w * slope_j)
    return loss, gradient


def _blocks(size: int, index: Tensor, share: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(torch.split(index, size), torch.split(share, size), strict=True)


def _logistic_block(
    s_i: Tensor, s_j: Tensor, p: Tensor, q: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ p_i q_j ℓ_ij and the row and column sums of p_i q_j σ(s_j − s_i)."""
    gap = s_i[:, None] - s_j  # (positives, negatives)
    q_like = q.to(gap.dtype)
    losses = -(logsigmoid(gap) @ q_like).double() @ p
    # The shares p are tiny but not negligible in float32; only the sums over a block are rounded.
    slopes = gap.neg_().sigmoid_()
    slope_i = p * (slopes @ q_like).double()
    slope_j = q * (p.to(gap.dtype) @ slopes).double()
    return losses, slope_i, slope_j
