"""The published method: the network of the paper trained on its rank-sum AUC loss."""

__all__ = ["HarmonRankPaper", "PaperConfig"]

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from harmonrank.methods.neural import NeuralConfig, NeuralMethod
from harmonrank.options import Count, Nonnegative, Positive, Rate

if TYPE_CHECKING:
    from torch import Tensor

    from harmonrank.training import Arrays, LossSlope, LossValue


@dataclass(frozen=True)
class PaperConfig(NeuralConfig):
    """Options of the network and its training, and how soft the ranks are.

    Rate, decay and strength are tuned, see benchmarks/tune_baselines.py.
    """

    learning_rate: Rate = 0.003
    weight_decay: Nonnegative = 0.01
    steps: Count = 6_000
    patience_steps: Count = 600
    strength: Positive = 3.0
    regularization: Literal["l2", "kl"] = "l2"


class HarmonRankPaper(NeuralMethod):
    """Minimises Σ_m w_m (1 − soft AUC_m) of the fused score, one soft rank for all objectives."""

    name = "harmonrank-paper"
    Config = PaperConfig

    def _loss(self, fused: "Tensor", batch: "Arrays", weights: "Tensor") -> "LossValue":
        from harmonrank.losses import rank_auc_loss
        from harmonrank.training import LossValue

        parts = rank_auc_loss(
            fused,
            batch.patterns,
            strength=self.config.strength,
            regularization=self.config.regularization,
            objective_weights=weights,
            sample_weight=batch.sample_weight,
            return_parts=True,
        )
        return LossValue(parts.loss, parts.gradient_share)

    def _slope(self, fused: np.ndarray, batch: "Arrays", weights: "Tensor") -> "LossSlope":
        from harmonrank.losses import rank_auc_slope
        from harmonrank.training import LossSlope

        found = rank_auc_slope(
            fused,
            batch.patterns,
            weights.numpy(),
            strength=self.config.strength,
            regularization=self.config.regularization,
            sample_weight=batch.sample_weight,
        )
        return LossSlope(*found)
