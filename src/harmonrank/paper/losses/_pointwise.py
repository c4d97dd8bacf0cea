"""Losses without pairs: cross-entropy, regression on aggregated labels, policy gradient."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from harmonrank.paper.losses._inputs import check_inputs, check_positive, check_vector
from harmonrank.support.errors import UsageError


def bce_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> Tensor:
    """Σ_m w_m · mean BCE(σ(s), y_m) = Σ_m w_m · mean [−y_m log σ(s) − (1−y_m) log σ(−s)].

    This is eq. 9 of docs/network.md: every objective has the same logit, the multi-objective loss
    of Pantheon. Fractional labels are probabilities. An objective with one class only is a valid
    target and does contribute. The loss of an empty batch, or of weights that are all zero, is 0.

    >>> scores = torch.tensor([0.0, 0.0])
    >>> round(bce_loss(scores, torch.tensor([[1, 0], [0, 0]])).item(), 6)  # 2 log 2
    1.386294
    """
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    s, y, w = inputs.scores, inputs.table, inputs.objective_weights
    # One logit for all: the label sums are enough, and the logarithms are taken once per row.
    rows = -(y @ w) * logsigmoid(s) - ((1 - y) @ w) * logsigmoid(-s)
    return _mean(rows, inputs.row_weights)


def label_aggregation_loss(
    scores: Tensor, labels: Tensor, values: Tensor, *, sample_weight: Tensor | None = None
) -> Tensor:
    """Mean of (s − Σ_m v_m y_m)²: regression on one label made of all.

    This is eq. 10 of docs/network.md. Its minimiser is Σ_m v_m p_m(x). With the
    `optimal_label_values` that is the best score for the weighted sum of AUCs; with v = 1, the
    plain label sum, it is not.

    Args:
        scores: Fused scores, (rows,).
        labels: Labels in [0, 1], (rows, objectives), or (rows,) for one objective.
        values: v, the value of an event of each objective, (objectives,); any sign.
        sample_weight: Row weights, (rows,); ones by default.

    >>> labels = torch.tensor([[1, 1], [0, 1]])
    >>> label_aggregation_loss(torch.tensor([5.0, 2.0]), labels, torch.tensor([3.0, 1.0])).item()
    1.0
    """
    inputs = check_inputs(scores, labels, None, sample_weight)
    values = check_vector("values", values, inputs.labels.shape[1], "objective", inputs.scores)
    target = inputs.table @ values.detach()
    return _mean((inputs.scores - target).square(), inputs.row_weights)


def optimal_label_values(prevalence: Tensor, objective_weights: Tensor | None = None) -> Tensor:
    """v_m = w_m / (π_m (1 − π_m)): the effective weights of Σ_m w_m AUC_m.

    >>> optimal_label_values(torch.tensor([0.5, 0.2], dtype=torch.float64))
    tensor([4.0000, 6.2500], dtype=torch.float64)
    """
    pi = check_vector("prevalence", prevalence, prevalence.numel(), "objective", prevalence)
    if not ((pi > 0) & (pi < 1)).all():
        raise UsageError(
            f"`prevalence` must lie strictly between 0 and 1. Got {prevalence.tolist()}; leave out "
            "an objective with one class only."
        )
    w = torch.ones_like(pi)
    if objective_weights is not None:
        w = check_vector("objective_weights", objective_weights, len(pi), "objective", pi)
    return w / (pi * (1 - pi))


def _mean(rows: Tensor, sample_weight: Tensor) -> Tensor:
    total = sample_weight.sum()
    return (rows @ sample_weight) / torch.where(total > 0, total, torch.inf)


def policy_gradient_loss(
    scores: Tensor,
    noise: Tensor,
    reward: Tensor,
    *,
    baseline: float | Tensor = 0.0,
    sigma: float = 1.0,
) -> Tensor:
    """REINFORCE: a surrogate whose gradient estimates −∇ E[reward(scores + sigma · noise)].

    L = −mean_k (R_k − b) ⟨noise_k, s⟩ / σ, eq. 11 of docs/network.md. The sampled scores
    a = s + σ·noise have ∇_s log N(a; s, σ²) = noise/σ, so ∇L is the score-function estimate. The
    caller draws the noise from N(0, 1), ranks by the sampled scores and computes the reward, such
    as the batch's AUC sum. Only the gradient is meaningful: the value of L does not fall as the
    policy improves.

    Args:
        scores: The network's scores, the means of the policy, (rows,).
        noise: Standard normal draws, (rows,) or (draws, rows).
        reward: Reward of the sampled scores: a scalar for (rows,), else (draws,).
        baseline: b, subtracted from the reward to lower the variance. The estimate stays unbiased
            if b does not depend on the same noise: a running mean, or the reward of `scores`.
        sigma: Standard deviation of the policy.

    >>> scores = torch.tensor([0.0, 0.0], requires_grad=True)
    >>> noise, reward = torch.tensor([1.0, -2.0]), torch.tensor(3.0)
    >>> policy_gradient_loss(scores, noise, reward, baseline=1.0, sigma=0.5).backward()
    >>> scores.grad  # −(3 − 1) · noise / 0.5
    tensor([-4.,  8.])
    """
    inputs = check_inputs(scores, torch.zeros_like(scores))
    sigma = check_positive("sigma", sigma)
    if noise.ndim not in (1, 2) or noise.shape[-1] != len(scores):
        raise UsageError(
            f"`noise` must be (rows,) or (draws, rows) with {len(scores)} rows. "
            f"Got {tuple(noise.shape)}."
        )
    if reward.shape != noise.shape[:-1]:
        raise UsageError(
            f"`reward` must have one value per draw of noise, {tuple(noise.shape[:-1])}. "
            f"Got {tuple(reward.shape)}."
        )
    lifted = noise.detach().to(inputs.scores)
    lifted = lifted if noise.ndim == 2 else lifted[None]
    advantage = (reward - baseline).detach().to(inputs.scores).reshape(-1)
    # A reward of nan, an absent objective's AUC say, would poison the network without a word.
    if not (torch.isfinite(advantage).all() and torch.isfinite(lifted).all()):
        raise UsageError("`noise`, `reward` and `baseline` must be finite. Got nan or infinity.")
    return -(advantage * (lifted @ inputs.scores)).sum() / (sigma * max(len(advantage), 1))
