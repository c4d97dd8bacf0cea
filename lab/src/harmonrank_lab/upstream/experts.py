"""Experts, gates and towers: what MMoE, PLE and ESMM are made of."""

__all__ = ["GroupedLinear", "Thinned", "Towers", "draw_from", "mix"]

import threading
from math import sqrt
from typing import Any, Self

import numpy as np
import torch
from numpy.random import SFC64
from torch import Tensor, nn

from harmonrank.support.kernel import kernel

Draws = torch.Generator | None

_OWN = 0.5
"""How fast an objective's own part of its tower is learned, beside the common part."""


@kernel
def thin(x: np.ndarray, drawn: np.ndarray, least: int, scale: float, kept: np.ndarray) -> None:
    """Write relu(x)·scale where a random byte is `least` or more, else 0; all arrays are flat.

    One pass; operations of PyTorch would be several, each with an array of its own.
    """
    for i in range(x.size):
        kept[i] = x[i] * scale if x[i] > 0 and drawn[i] >= least else np.float32(0)


@kernel
def thin_slope(slope: np.ndarray, kept: np.ndarray, scale: float, result: np.ndarray) -> None:
    """Write the slope by x, given that by `kept`: what came out as 0 passes nothing on."""
    for i in range(kept.size):
        result[i] = slope[i] * scale if kept[i] > 0 else np.float32(0)


class GroupedLinear(nn.Module):
    """One linear map per group, all as one batched product: y_g = x_g W_g + b_g.

    >>> GroupedLinear(3, 4, 2)(torch.zeros(3, 10, 4)).shape
    torch.Size([3, 10, 2])
    """

    def __init__(self, groups: int, inputs: int, outputs: int, generator: Draws = None) -> None:
        super().__init__()
        reach = 1 / sqrt(inputs)
        weight = torch.empty(groups, inputs, outputs)
        self.weight = nn.Parameter(weight.uniform_(-reach, reach, generator=generator))
        self.bias = nn.Parameter(torch.zeros(groups, 1, outputs))

    def alike(self) -> Self:
        """Let every group begin as the first does; return the layer."""
        self.weight.data = self.weight.data[:1].repeat(len(self.weight), 1, 1)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Map (groups, rows, inputs) to (groups, rows, outputs)."""
        return torch.baddbmm(self.bias, x, self.weight)


class Towers(nn.Module):
    """One hidden layer and one logit per objective; the logits begin at their biases.

    Weights are W_m = W + ½V_m with V_m = 0 at first: all towers begin as one, which the frequent
    objectives teach, and a rare one departs from it by what its own few positives tell, at half
    the speed. On their own, a thousand positives do not teach a tower of two thousand weights.
    """

    def __init__(
        self, objectives: int, inputs: int, width: int, dropout: float, generator: Draws = None
    ) -> None:
        super().__init__()
        self.hidden = GroupedLinear(1, inputs, width, generator)
        self.own_weight = nn.Parameter(torch.zeros(objectives, inputs, width))
        self.own_bias = nn.Parameter(torch.zeros(objectives, 1, width))
        self.thinned = Thinned(dropout)
        self.last = nn.Parameter(torch.zeros(1, 1, width))
        self.own_last = nn.Parameter(torch.zeros(objectives, 1, width))
        self.bias = nn.Parameter(torch.zeros(objectives))

    def forward(self, x: Tensor) -> Tensor:
        """Map (objectives, rows, inputs) to logits, (rows, objectives)."""
        weight = self.hidden.weight + _OWN * self.own_weight  # (objectives, inputs, width)
        bias = self.hidden.bias + _OWN * self.own_bias  # (objectives, 1, width)
        hidden = self.thinned(torch.baddbmm(bias, x, weight))  # (objectives, rows, width)
        last = self.last + _OWN * self.own_last  # (objectives, 1, width)
        logits: Tensor = (hidden * last).sum(dim=2).T + self.bias  # (rows, objectives)
        return logits


class Thinned(nn.Module):
    """relu, then dropout: in training a share of the units becomes 0 and the others scale up.

    The share is rounded to 1/256: random bytes are cheap, and one random number per unit, as
    PyTorch draws, would take a quarter of a training step. `draw_from` decides them.

    >>> Thinned(0.5).eval()(torch.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self._least = round(256 * share)

    def forward(self, x: Tensor) -> Tensor:
        """Return what is left of x, of the same shape."""
        if not self.training or self._least == 0:
            return torch.relu(x)
        kept: Tensor = _Thin.apply(x, self._least)  # type: ignore[no-untyped-call]
        return kept


class _Draws(threading.local):
    """Where the random bytes of a thread come from."""

    def __init__(self) -> None:
        self.source = SFC64(0)


_draws = _Draws()


def draw_from(seed: int) -> None:
    """Let the seed decide what dropout leaves out from here on, on this thread."""
    _draws.source = SFC64(seed)


class _Thin(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, least: int) -> Tensor:
        drawn = _draws.source.random_raw(-(-x.numel() // 8)).view(np.uint8)
        ctx.scale, ctx.kept = np.float32(256 / (256 - least)), np.empty(x.shape, np.float32)
        values = x.detach().contiguous().numpy()
        thin(values.ravel(), drawn, least, ctx.scale, ctx.kept.ravel())
        return torch.from_numpy(ctx.kept)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        result, slope = np.empty_like(ctx.kept), slopes[0].contiguous().numpy()
        thin_slope(slope.ravel(), ctx.kept.ravel(), ctx.scale, result.ravel())
        return torch.from_numpy(result), None


def mix(gates: Tensor, experts: Tensor) -> Tensor:
    """Return each objective's blend of the experts: Σ_e softmax(gates)_me · experts_e.

    Args:
        gates: (rows, objectives, experts), before the softmax.
        experts: (rows, experts, width).

    Returns:
        (objectives, rows, width).

    >>> even = mix(torch.zeros(1, 1, 2), torch.tensor([[[1.0], [3.0]]]))
    >>> even.tolist()
    [[[2.0]]]
    """
    return torch.bmm(torch.softmax(gates, dim=2), experts).transpose(0, 1)
