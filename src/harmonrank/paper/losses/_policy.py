"""One-step policy gradient: a Gaussian around the score, rewarded for the order it draws."""

__all__ = ["policy_gradient_loss"]

import torch
from torch import Tensor

from harmonrank.paper.losses._inputs import check_inputs, check_positive
from harmonrank.support.errors import UsageError


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
    caller draws the noise from N(0, 1), ranks by the sampled scores and computes the reward (the
    batch's AUC sum, say). Only the gradient means something; the value of L does not fall as the
    policy improves.

    Args:
        scores: The network's scores, the means of the policy, (rows,).
        noise: Standard normal draws, (rows,) or (draws, rows).
        reward: What the sampled scores earned: a scalar for (rows,), else (draws,).
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
