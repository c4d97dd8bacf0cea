"""Decay: shrinks some weights a little before every step, apart from the gradient."""

__all__ = ["Decay", "decayed", "optimizer_of"]

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from harmonrank.paper.training_config import TrainingConfig

_SCALES = ("value.weight", "output.weight", "linear.weight")


def decayed(name: str) -> bool:
    """Tell whether decay acts on a parameter of the network, by its name.

    The rank loss does not change when the fused score is scaled, so it does not hold against a
    decay of weights that only set that scale: it would shrink them, step by step, to nothing but
    rounding. These are the output layers w1, w2, w3, and the value projections W_V and W_Vp before
    w1, which set the scale of the relation-aware path. They are left alone, and so are the biases.
    What remains decides the shape of the score: the tables, and the weights inside a softmax or
    sigmoid (queries, keys, gate).

    >>> decayed("scores.table"), decayed("relation_aware.query.weight")
    (True, True)
    >>> decayed("relation_aware.context_value.weight"), decayed("gated.gate.bias")
    (False, False)
    """
    return not name.endswith((".bias", *_SCALES))


class Decay:
    """Multiplies weights by 1 − rate · decay, where decay acts (Loshchilov & Hutter, 2019).

    Args:
        decay: How much, at a rate of 1.
        optimizer: Its rate of the moment counts.
        weights: Each with 1 where decay acts and 0 elsewhere, or one of both for all of it.
    """

    def __init__(
        self,
        decay: float,
        optimizer: torch.optim.Optimizer,
        weights: Iterable[tuple[Tensor, Tensor]],
    ) -> None:
        self._decay, self._optimizer = decay, optimizer
        self._weights = list(weights) if decay else []

    @torch.no_grad()
    def step(self) -> None:
        """Shrink the weights once."""
        size = self._decay * self._optimizer.param_groups[0]["lr"]
        for weight, acts in self._weights:
            weight.mul_(1 - size * acts)


def optimizer_of(config: TrainingConfig, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """Return the optimiser of some parameters, which knows nothing of decay."""
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.SGD
    # One call for all parameters: a small network's update is otherwise all overhead.
    return kind(parameters, lr=config.learning_rate, fused=True)
