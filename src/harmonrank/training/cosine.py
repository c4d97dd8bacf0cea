"""Cosine: an Adam whose rate falls to 0 along a cosine, as a way to be trained."""

__all__ = ["CosineAdam", "CosineConfig"]

from dataclasses import dataclass
from math import cos, pi
from typing import Any

import torch
from torch import nn

from harmonrank.model.training import TrainingConfig


class CosineAdam(torch.optim.Adam):
    """Adam with rate · ½(1 + cos(π · step/steps)), after a rise over the first steps.

    The step is read from the state of Adam itself, so that a checkpoint knows it.

    >>> weight = nn.Parameter(torch.zeros(1))
    >>> optimizer = CosineAdam([weight], lr=1.0, steps=100, warm_up=10)
    >>> optimizer.rate(0), optimizer.rate(9) > 0.9, optimizer.rate(99) < 0.001
    (0.1, True, True)
    """

    def __init__(
        self, parameters: list[nn.Parameter], *, lr: float, steps: int, warm_up: int, **options: Any
    ) -> None:
        super().__init__(parameters, lr=lr, **options)
        self._first, self._rate, self._steps, self._warm_up = parameters[0], lr, steps, warm_up

    def rate(self, step: int) -> float:
        """Return the rate of a step, which counts from 0."""
        fallen = 0.5 * (1 + cos(pi * min(step / self._steps, 1.0)))
        return self._rate * min((step + 1) / self._warm_up, 1.0) * fallen

    def step(self, closure: Any = None) -> Any:
        """Take a step at its rate."""
        state = self.state.get(self._first)
        taken = int(state["step"]) if state else 0
        for group in self.param_groups:
            group["lr"] = self.rate(taken)
        return super().step(closure)


@dataclass(frozen=True, kw_only=True)
class CosineConfig(TrainingConfig):
    """How a network is trained when the rate falls with the steps.

    On the way the weights are noisy, so those of the end are kept: there is no early stopping.

    Attributes:
        rows: How many training rows there are, which decides the number of steps.
        warm_up: Steps over which the rate rises at first.
    """

    early_stopping: bool = False
    rows: int = 1
    warm_up: int = 50

    def build(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimiser of some parameters."""
        plan = self.plan(self.rows)
        steps = plan.steps * plan.epochs
        warm_up = max(min(self.warm_up, steps // 10), 1)
        return CosineAdam(
            parameters, lr=self.learning_rate, steps=steps, warm_up=warm_up, fused=True
        )
