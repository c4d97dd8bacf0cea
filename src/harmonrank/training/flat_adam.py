"""Flat Adam: PyTorch's Adam on one vector, without the cost of its calls."""

__all__ = ["FlatAdam"]

from typing import Any

import numpy as np
import torch
from torch import nn

from harmonrank.kernel import kernel


class FlatAdam:
    """Takes the steps of a `torch.optim.Adam` that has one vector, in its own state.

    A network of some thousand weights is updated in microseconds; the optimiser around it takes
    a hundred times as long. Its state stays the truth, so a checkpoint knows no difference.

    Args:
        optimizer: An Adam that `fits`, of one float32 parameter on the CPU that has a gradient.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        (self._group,) = optimizer.param_groups
        (self._parameter,) = self._group["params"]
        self._optimizer = optimizer

    @staticmethod
    def fits(optimizer: torch.optim.Optimizer) -> bool:
        """Tell whether it is a plain Adam."""
        if type(optimizer) is not torch.optim.Adam:
            return False
        (group,) = optimizer.param_groups
        return not (group["amsgrad"] or group["maximize"])

    def step(self) -> None:
        """Update the vector, as `optimizer.step()` would."""
        state = self._optimizer.state[self._parameter]
        if not state:
            self._optimizer.step()  # The first one makes the state.
            return
        state["step"] += 1
        group, gradient = self._group, self._parameter.grad
        assert isinstance(self._parameter, nn.Parameter)
        assert gradient is not None
        beta1, beta2 = group["betas"]
        _update(
            self._parameter.detach().numpy(), gradient.numpy(), state["exp_avg"].numpy(),
            state["exp_avg_sq"].numpy(), float(state["step"]), group["lr"], beta1, beta2,
            group["eps"], group["weight_decay"],
        )  # fmt: skip


@kernel
def _update(
    w: Any, gradient: Any, m: Any, v: Any, step: float, rate: float, beta1: float, beta2: float,
    eps: float, decay: float,
) -> None:  # fmt: skip
    """Set m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², w ← w − rate·m̂/(√v̂ + ε), with g decayed."""
    size = rate / (1 - beta1**step)
    inverse = 1 / np.sqrt(1 - beta2**step)
    for i in range(w.size):
        g = gradient[i] + decay * w[i]
        m[i] += (1 - beta1) * (g - m[i])
        v[i] = beta2 * v[i] + (1 - beta2) * g * g
        # np.divide, as `/` would test for zero and keep the loop from being vectorised.
        w[i] -= np.divide(size * m[i], np.sqrt(v[i]) * inverse + eps)
