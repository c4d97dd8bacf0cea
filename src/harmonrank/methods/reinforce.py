"""Reinforce: a one-step policy that is rewarded for the AUC-sum of the scores it draws."""

__all__ = ["Reinforce", "ReinforceConfig"]

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from harmonrank.errors import UsageError
from harmonrank.methods.neural import NeuralConfig, NeuralMethod
from harmonrank.metrics import auc

if TYPE_CHECKING:
    from harmonrank.training import Arrays, LossValue


@dataclass(frozen=True)
class ReinforceConfig(NeuralConfig):
    """Options of the network and its training, and of the policy.

    Attributes:
        sigma: Spread of the policy, in standard deviations of the batch's scores.
        draws: How often each batch is drawn; the mean reward of the other draws is the baseline.
    """

    sigma: float = 0.5
    draws: int = 8

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise UsageError(f"`sigma` must be above 0. Got {self.sigma}.")
        if self.draws < 2:
            raise UsageError(f"`draws` must be at least 2, for a baseline. Got {self.draws}.")


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
        rewards = self._rewards(mean + sigma * noise, batch, weights)
        others = (rewards.sum() - rewards) / (len(rewards) - 1)
        loss = policy_gradient_loss(
            fused,
            torch.from_numpy(noise),
            torch.from_numpy(rewards),
            baseline=torch.from_numpy(others),
            sigma=sigma,
        )
        return LossValue(loss)

    def _rewards(self, actions: np.ndarray, batch: "Arrays", weights: Tensor) -> np.ndarray:
        labels, w = batch.labels.cpu().numpy(), weights.cpu().numpy()
        v = None if batch.sample_weight is None else batch.sample_weight.cpu().numpy()
        each = np.stack([auc(action, labels, sample_weight=v) for action in actions])
        # An objective that the batch does not show earns nothing.
        return np.asarray(np.nan_to_num(each) @ w)
