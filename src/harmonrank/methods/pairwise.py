"""Pairwise losses: every positive against every negative, by a square or a logistic curve."""

__all__ = ["PairwiseLogistic", "PairwiseLogisticConfig", "PairwiseSquare", "PairwiseSquareConfig"]

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from harmonrank.methods.neural import NeuralConfig, NeuralMethod
from harmonrank.options import Count, Nonnegative, Positive, Rate

if TYPE_CHECKING:
    from harmonrank.training import Arrays, LossValue


@dataclass(frozen=True)
class PairwiseSquareConfig(NeuralConfig):
    """Options of the network and its training, and the gap that a pair should have.

    Rate and decay are tuned, see benchmarks/tune_baselines.py.
    """

    learning_rate: Rate = 0.003
    weight_decay: Nonnegative = 0.01
    steps: Count = 6_000
    patience_steps: Count = 600
    margin: Positive = 1.0


class PairwiseSquare(NeuralMethod):
    """Minimises Σ_m w_m mean (margin − (s_i − s_j))² over pairs, on the paper's network.

    It costs no pairs: (margin − Δμ)² + Var⁺ + Var⁻ is the same number.
    """

    name = "pairwise-square"
    Config = PairwiseSquareConfig

    def _loss(self, fused: Tensor, batch: "Arrays", weights: Tensor) -> "LossValue":
        from harmonrank.losses import pairwise_square_loss
        from harmonrank.training import LossValue

        return LossValue(
            pairwise_square_loss(
                fused,
                batch.labels,
                margin=self.config.margin,
                objective_weights=weights,
                sample_weight=batch.sample_weight,
            )
        )


@dataclass(frozen=True)
class PairwiseLogisticConfig(NeuralConfig):
    """Options of the network and its training.

    Rate and decay are tuned, see benchmarks/tune_baselines.py.
    """

    learning_rate: Rate = 0.003
    weight_decay: Nonnegative = 0.001
    steps: Count = 6_000
    patience_steps: Count = 600


class PairwiseLogistic(NeuralMethod):
    """Minimises Σ_m w_m mean log(1 + exp(−(s_i − s_j))) over pairs, on the paper's network."""

    name = "pairwise-logistic"
    Config = PairwiseLogisticConfig

    def _loss(self, fused: Tensor, batch: "Arrays", weights: Tensor) -> "LossValue":
        from harmonrank.losses import pairwise_logistic_loss
        from harmonrank.training import LossValue

        return LossValue(
            pairwise_logistic_loss(
                fused,
                batch.labels,
                objective_weights=weights,
                sample_weight=batch.sample_weight,
            )
        )
