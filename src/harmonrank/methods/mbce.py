"""Multi-objective cross-entropy: one logit that answers for every objective."""

__all__ = ["Mbce", "MbceConfig"]

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from harmonrank.methods.neural import NeuralConfig, NeuralMethod
from harmonrank.options import Count, Nonnegative, Rate

if TYPE_CHECKING:
    from harmonrank.training import Arrays, LossValue


@dataclass(frozen=True)
class MbceConfig(NeuralConfig):
    """Options of the network and its training, tuned by benchmarks/tune_baselines.py."""

    learning_rate: Rate = 0.03
    weight_decay: Nonnegative = 0.001
    steps: Count = 6_000
    patience_steps: Count = 600


class Mbce(NeuralMethod):
    """Minimises Σ_m w_m BCE(σ(s), y_m) on the paper's network: the loss of Pantheon.

    Its best score is the logit of Σ_m w_m p_m / Σ_m w_m, so common objectives drown rare ones.
    """

    name = "mbce"
    Config = MbceConfig

    def _loss(self, fused: Tensor, batch: "Arrays", weights: Tensor) -> "LossValue":
        from harmonrank.losses import bce_loss
        from harmonrank.training import LossValue

        return LossValue(
            bce_loss(
                fused,
                batch.labels,
                objective_weights=weights,
                sample_weight=batch.sample_weight,
            )
        )
