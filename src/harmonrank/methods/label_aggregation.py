"""Label aggregation: regression on one label made of all."""

__all__ = ["LabelAggregation", "LabelAggregationConfig", "LabelAggregationOptimal"]

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from harmonrank.methods.base import Fit
from harmonrank.methods.neural import NeuralConfig, NeuralMethod
from harmonrank.options import Count, Nonnegative, Rate

if TYPE_CHECKING:
    from harmonrank.training import Arrays, LossValue


@dataclass(frozen=True)
class LabelAggregationConfig(NeuralConfig):
    """Options of the network and its training, and what an event of an objective is worth.

    Rate and decay are tuned, see benchmarks/tune_baselines.py.

    Attributes:
        values: 'plain' counts an event w_m, so events alone where weights are 1; 'optimal'
            counts it w_m/(π_m(1−π_m)), whose regression is the best score for Σ_m w_m AUC_m.
    """

    learning_rate: Rate = 0.003
    weight_decay: Nonnegative = 0.001
    steps: Count = 6_000
    patience_steps: Count = 600
    values: Literal["plain", "optimal"] = "plain"


class LabelAggregation(NeuralMethod):
    """Minimises (s − Σ_m v_m y_m)² on the paper's network: IntEL's idea.

    The aggregated label is divided by its standard deviation, so that one learning rate serves
    all values; the order of scores does not depend on it.
    """

    name = "label-aggregation"
    Config = LabelAggregationConfig

    _values: Tensor

    def _fit(self, fit: Fit) -> None:
        pi = fit.train.prevalence()
        values = 1 / (pi * (1 - pi)) if self.config.values == "optimal" else pi * 0 + 1
        spread = float((fit.train.known_labels() @ (fit.weights * values)).std())
        self._values = torch.from_numpy(values / (spread or 1.0)).to(fit.device)
        super()._fit(fit)

    def _loss(self, fused: Tensor, batch: "Arrays", weights: Tensor) -> "LossValue":
        from harmonrank.losses import label_aggregation_loss
        from harmonrank.training import LossValue

        values = weights * self._values
        return LossValue(
            label_aggregation_loss(fused, batch.labels, values, sample_weight=batch.sample_weight)
        )


@dataclass(frozen=True)
class _OptimalConfig(LabelAggregationConfig):
    values: Literal["plain", "optimal"] = "optimal"


class LabelAggregationOptimal(LabelAggregation):
    """Label aggregation whose values make it consistent for Σ_m w_m AUC_m."""

    name = "label-aggregation-optimal"
    Config = _OptimalConfig
