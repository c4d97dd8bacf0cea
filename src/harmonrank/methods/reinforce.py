"""Reinforce: a one-step policy that is rewarded for the AUC-sum of the scores it draws."""

__all__ = ["Reinforce", "ReinforceConfig", "auc_sums"]

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from zlib import crc32

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor

from harmonrank.methods.neural import NeuralConfig, NeuralMethod
from harmonrank.options import Count, Nonnegative, Positive, Rate

if TYPE_CHECKING:
    from harmonrank.training import Arrays, LossValue


@dataclass(frozen=True)
class ReinforceConfig(NeuralConfig):
    """Options of the network and its training, and of the policy.

    One reward answers for all rows of a batch, so what it says about a row gets lost in many:
    batches are small and drawn often. Rate, decay and the policy's options are tuned, see
    benchmarks/tune_baselines.py.

    Attributes:
        sigma: Spread of the policy, in standard deviations of the batch's scores.
        draws: How often each batch is drawn; the mean reward of the other draws is the baseline.
    """

    batch_rows: Count = 512
    learning_rate: Rate = 0.003
    weight_decay: Nonnegative = 0.01
    steps: Count = 24_000
    patience_steps: Count = 6_000
    sigma: Positive = 0.1
    draws: Annotated[int, Meta(ge=2, le=10_000)] = 32


class Reinforce(NeuralMethod):
    """Maximises E Σ_m w_m AUC_m(s + σ·noise) by policy gradient, on the paper's network.

    State: a batch's scores and context. Action: its sampled fused scores. Reward: the AUC-sum of
    the batch under them, less the mean reward of the batch's other draws.
    """

    name = "reinforce"
    Config = ReinforceConfig

    def _loss(self, fused: Tensor, batch: "Arrays", weights: Tensor) -> "LossValue":
        from harmonrank.losses import policy_gradient_loss
        from harmonrank.training import LossValue

        mean = fused.detach().double().cpu().numpy()
        # Drawn from the scores themselves: a fit that was interrupted draws the same again.
        rng = np.random.default_rng(crc32(mean.tobytes()))
        noise = rng.standard_normal((self.config.draws, len(mean)))
        sigma = self.config.sigma * float(mean.std()) or self.config.sigma
        rewards = auc_sums(
            mean + sigma * noise,
            batch.labels.cpu().numpy(),
            weights.cpu().numpy(),
            None if batch.sample_weight is None else batch.sample_weight.cpu().numpy(),
        )
        others = (rewards.sum() - rewards) / (len(rewards) - 1)
        loss = policy_gradient_loss(
            fused,
            torch.from_numpy(noise),
            torch.from_numpy(rewards),
            baseline=torch.from_numpy(others),
            sigma=sigma,
        )
        return LossValue(loss)


def auc_sums(
    actions: np.ndarray, labels: np.ndarray, weights: np.ndarray, sample_weight: np.ndarray | None
) -> np.ndarray:
    """Return Σ_m w_m (AUC_m − ½) of each draw of scores; no two scores of a draw are equal.

    The sum is linear in the ranks, so a draw costs one sort whatever the objectives. An objective
    that the rows do not show earns nothing.

    >>> draws = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    >>> auc_sums(draws, np.array([[0], [0], [1]]), np.ones(1), None)
    array([ 0.5, -0.5])
    """
    v = np.ones(len(labels)) if sample_weight is None else sample_weight
    positive, negative = v @ labels, v @ (1.0 - labels)
    pairs = positive * negative
    share = np.divide(weights, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
    gain = v * (labels @ share)
    order = actions.argsort(axis=1)
    sorted_weight = v[order]
    ranks = sorted_weight.cumsum(axis=1) - sorted_weight / 2 - v.sum() / 2
    return np.asarray((gain[order] * ranks).sum(axis=1))
