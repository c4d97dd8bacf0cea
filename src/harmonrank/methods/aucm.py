"""AUCM: the margin loss of AUC as a min-max problem."""

__all__ = ["Aucm", "AucmConfig"]

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import torch
from msgspec import Meta
from torch import Tensor

from harmonrank.methods.base import Fit
from harmonrank.methods.neural import NeuralConfig, NeuralMethod
from harmonrank.options import Count, Nonnegative, Positive, Rate

if TYPE_CHECKING:
    from harmonrank.training import Arrays, LossValue


@dataclass(frozen=True)
class AucmConfig(NeuralConfig):
    """Options of the network and its training, and of the inner problem.

    Rate, decay and inner rate are tuned, see benchmarks/tune_baselines.py.

    Attributes:
        margin: Gap of the class means beyond which nothing more is asked.
        inner_rate: Step size of a, b and α.
    """

    learning_rate: Rate = 0.003
    weight_decay: Nonnegative = 0.01
    steps: Count = 6_000
    patience_steps: Count = 600
    margin: Positive = 1.0
    inner_rate: Annotated[float, Meta(gt=0, le=0.5)] = 0.5


class Aucm(NeuralMethod):
    """Minimises AUCM over the network, a and b, and maximises it over α ≥ 0, step by step.

    Each step is one of the network, then one of gradient descent in a and b and of ascent in α
    with their own rate: a ← a + 2·rate·(μ⁺ − a), b likewise, α ← [α + 2·rate·(margin − Δμ − α)]₊
    with the class means of the batch. An objective that a batch does not show keeps its own.
    """

    name = "aucm"
    Config = AucmConfig

    def _first_memory(self, fit: Fit) -> dict[str, Tensor]:
        return {name: torch.zeros(len(fit.weights), dtype=torch.float64) for name in _INNER}

    def _loss(self, fused: Tensor, batch: "Arrays", weights: Tensor) -> "LossValue":
        from harmonrank.losses import aucm_loss
        from harmonrank.training import LossValue

        return LossValue(
            aucm_loss(
                fused,
                batch.labels,
                *(self._memory[name] for name in _INNER),
                margin=self.config.margin,
                objective_weights=weights,
                sample_weight=batch.sample_weight,
            )
        )

    def _remember(self, fused: Tensor, batch: "Arrays") -> None:
        from harmonrank.losses import aucm_loss

        inner = [self._memory[name].clone().requires_grad_() for name in _INNER]
        value = aucm_loss(
            fused, batch.labels, *inner, margin=self.config.margin,
            sample_weight=batch.sample_weight,
        )  # fmt: skip
        slopes = torch.autograd.grad(value, inner)
        for name, sign, slope in zip(_INNER, (-1, -1, 1), slopes, strict=True):
            self._memory[name] += sign * self.config.inner_rate * slope
        self._memory["alpha"].clamp_(min=0)


_INNER = ("a", "b", "alpha")
