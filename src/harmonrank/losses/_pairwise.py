"""AUC surrogates that average a function of s_i − s_j over positive-negative pairs."""

__all__ = ["pairwise_logistic_loss", "pairwise_square_loss"]

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from harmonrank.errors import UsageError
from harmonrank.losses._classes import class_moments
from harmonrank.losses._gradient import with_gradient
from harmonrank.losses._inputs import Inputs, check_inputs, check_positive

# Three folds multiply at most 15 factors, and (1 + e^30)^−15 is still a normal float64.
_NARROW = 30.0


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
    moments = class_moments(inputs.scores, inputs.labels, inputs.sample_weight)
    losses = (
        (margin - moments.mean_gap).square() + moments.variance_positive + moments.variance_negative
    )
    return (inputs.objective_weights * moments.present) @ losses


def pairwise_logistic_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
    block_size: int = 1 << 19,
) -> Tensor:
    """Σ_m w_m · mean over pairs of log(1 + exp(−(s_i − s_j))).

    All n⁺n⁻ pairs are visited, `block_size` of them at a time, in float64: value and gradient come
    from one sweep, and only the gradient, one number per row, is kept for the backward pass.

    An objective without a positive or a negative contributes nothing. Sample weights multiply: the
    pair (i, j) weighs v_i v_j.

    >>> scores = torch.tensor([1.0, 1.0, 1.0])
    >>> round(pairwise_logistic_loss(scores, torch.tensor([1, 0, 0])).item(), 6)  # log 2
    0.693147
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    if block_size < 1:
        raise UsageError(f"`block_size` must be at least 1. Got {block_size}.")
    loss, gradient = _logistic_sweep(inputs._replace(scores=inputs.scores.detach()), block_size)
    return with_gradient(inputs.scores, loss, gradient)


def _logistic_sweep(inputs: Inputs, block_size: int) -> tuple[Tensor, Tensor]:
    """Return the loss and its gradient, summed over the objectives."""
    s, v = inputs.scores, inputs.sample_weight
    loss, gradient = s.new_zeros(()), torch.zeros_like(s)
    narrow = len(s) > 0 and bool(s.max() - s.min() <= _NARROW)
    block_of = _factored_block if narrow else _direct_block
    for w, y in zip(inputs.objective_weights, inputs.labels.T, strict=True):
        p, q = v * y, v * (1 - y)
        positive, negative = p.nonzero().flatten(), q.nonzero().flatten()
        if not (len(positive) and len(negative)):
            continue
        scale = w / (p.sum() * q.sum())
        columns = min(len(negative), block_size)
        for i in torch.split(positive, max(1, block_size // columns)):
            for j in torch.split(negative, columns):
                losses, slope_i, slope_j = block_of(s[i], s[j], p[i], q[j])
                loss += scale * losses
                gradient.index_add_(0, i, -scale * slope_i)
                gradient.index_add_(0, j, scale * slope_j)
    return loss, gradient


def _factored_block(s_i: Tensor, s_j: Tensor, p: Tensor, q: Tensor) -> tuple[Tensor, ...]:
    """Return Σ p_i q_j ℓ_ij and the row and column sums of p_i q_j σ(s_j − s_i).

    exp(s_j − s_i) is a product, so a pair costs no exponential; and positives of equal weight
    share a logarithm, Σ log σ = log Π σ.
    """
    middle = s_i[0]
    odds = torch.outer((middle - s_i).exp(), (s_j - middle).exp())  # (positives, negatives)
    wins = odds.add_(1).reciprocal_()  # σ(s_i − s_j)
    slope_i, slope_j = p * (q.sum() - wins @ q), q * (p.sum() - p @ wins)
    if bool((p == p[0]).all()):
        wins = _fold(_fold(_fold(wins)))
    return -(wins.log_() @ q) @ p[: len(wins)], slope_i, slope_j


def _fold(wins: Tensor) -> Tensor:
    """Multiply the second half of the rows into the first, in place; a last odd row into row 0."""
    half = len(wins) // 2
    if half == 0:
        return wins
    if len(wins) % 2:
        wins[0] *= wins[-1]
    return wins[:half].mul_(wins[half : 2 * half])


def _direct_block(s_i: Tensor, s_j: Tensor, p: Tensor, q: Tensor) -> tuple[Tensor, ...]:
    """Return the same as `_factored_block`, for scores so far apart that exp would overflow."""
    gap = s_i[:, None] - s_j  # (positives, negatives)
    losses = -(logsigmoid(gap) @ q) @ p
    slopes = gap.neg_().sigmoid_()
    return losses, p * (slopes @ q), q * (p @ slopes)
