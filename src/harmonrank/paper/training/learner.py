"""Learners: take one training step on some rows, with PyTorch or with the fused kernels."""

__all__ = [
    "Decay",
    "FusedLearner",
    "LossFunction",
    "LossValue",
    "NetworkLearner",
    "TorchLearner",
    "decayed",
    "learner_for",
    "optimizer_of",
    "torch_threads",
]

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from harmonrank.paper import Network
from harmonrank.paper.config import TrainingConfig
from harmonrank.paper.fused import TrainingStep, covers
from harmonrank.paper.training.rows import Arrays
from harmonrank.support.threads import thread_count

_SCALES = ("value.weight", "output.weight", "linear.weight")
_SMALL_FIT = 200_000  # A fit that sees fewer rows ends before the kernels are compiled.


@contextmanager
def torch_threads(count: int | None = None) -> Iterator[None]:
    """Let PyTorch use this many threads inside the block, by default `thread_count()`.

    One thread is best for a small batch, where several mostly wait for each other.
    """
    before, count = torch.get_num_threads(), thread_count() if count is None else count
    if count == before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
        decay: The share taken off at a learning rate of 1.
        optimizer: Its current learning rate scales the decay.
        weights: Each weight with its mask, 1 where decay acts and 0 elsewhere.
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
    """Return the optimiser of some parameters, without decay."""
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.SGD
    # One call for all parameters: a small network's update is otherwise all overhead.
    return kind(parameters, lr=config.learning_rate, fused=True)


@dataclass(frozen=True)
class LossValue:
    """The loss of a batch.

    Attributes:
        loss: The value, part of the autograd graph.
        gradient_share: Share of items with a gradient, if the loss knows it.
        slope: Gradient of the loss by the network's output, if it was computed with the loss;
            otherwise autograd computes it.
    """

    loss: Tensor
    gradient_share: float | None = None
    slope: NDArray[np.float64] | None = None


LossFunction = Callable[[Tensor, Arrays], LossValue]


class TorchLearner:
    """Trains by autograd through the network itself, on any device; the reference.

    Attributes:
        kind: A checkpoint is continued by the kind of learner that wrote it.
        optimizer: Its state is the learner's only state besides the weights.
    """

    kind: ClassVar = "torch"

    def __init__(self, network: nn.Module, rows: Arrays, config: TrainingConfig) -> None:
        self._network, self._rows = network, rows
        self.optimizer = optimizer_of(config, list(network.parameters()))
        acts = [(p, torch.ones(())) for name, p in network.named_parameters() if decayed(name)]
        self._decay = Decay(config.weight_decay, self.optimizer, acts)

    def step(self, index: NDArray[np.int64], loss: LossFunction) -> tuple[float, float | None]:
        """Change the weights by one step on these rows.

        Return the loss before it, and the share of items as in `LossValue`.
        """
        self._network.train()
        with torch_threads():
            batch = self._rows.batch(torch.from_numpy(index).to(self._rows.scores.device))
            value = loss(self._network(batch.scores, batch.context), batch)
            self.optimizer.zero_grad(set_to_none=True)
            if value.loss.requires_grad:
                value.loss.backward()  # type: ignore[no-untyped-call]
                self._decay.step()
                self.optimizer.step()
        return float(value.loss.detach()), value.gradient_share


class FusedLearner:
    """Takes the same step with kernels, which compute the scores and the gradient.

    All weights are one parameter of the optimiser, so that a step costs few calls. The network's
    own parameters become views of it.

    Args:
        network: To be trained.
        rows: The training rows.
        config: Optimiser, rate and decay.
    """

    kind: ClassVar = "fused"

    def __init__(self, network: Network, rows: Arrays, config: TrainingConfig) -> None:
        self._rows = rows
        scores, context = rows.scores.numpy(), rows.context.numpy()
        self._step = TrainingStep(network, scores, context, threads=thread_count())
        self._flat = _flattened(network)
        self._flat.grad = torch.zeros_like(self._flat)
        self.optimizer = optimizer_of(config, [self._flat])
        acts = torch.from_numpy(self._step.weights.marked(decayed)).float()
        self._decay = Decay(config.weight_decay, self.optimizer, [(self._flat, acts)])

    def step(self, index: NDArray[np.int64], loss: LossFunction) -> tuple[float, float | None]:
        """Run both kernels around the loss, then the optimiser."""
        assert self._flat.grad is not None
        self._step.weights.vector[:] = self._flat.detach().numpy()
        with torch_threads(1):
            batch = self._rows.batch(torch.from_numpy(index))
            fused = torch.from_numpy(self._step.forward(index)).requires_grad_()
            value = loss(fused, batch)
            slope = value.slope
            if slope is None and value.loss.requires_grad:
                (gradient,) = torch.autograd.grad(value.loss, fused)
                slope = gradient.contiguous().numpy()
            if slope is not None:
                self._step.backward(slope.astype(np.float32, copy=False))
                self._flat.grad.copy_(torch.from_numpy(self._step.gradient.vector))
                self._decay.step()
                self.optimizer.step()
        return float(value.loss.detach()), value.gradient_share


NetworkLearner = TorchLearner | FusedLearner


def _flattened(network: nn.Module) -> nn.Parameter:
    """Return all parameters of a network as one vector, of which they are views from now on."""
    parameters = list(network.parameters())
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
    parts = torch.split(flat, [parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.data = part.view_as(parameter)
    return nn.Parameter(flat)


def learner_for(
    network: nn.Module, rows: Arrays, config: TrainingConfig, rows_seen: int
) -> NetworkLearner:
    """Choose the kernels where they cover the network and are worth compiling, else PyTorch.

    The choice depends on the network, its device and the size of the fit alone, never on what
    this machine has compiled before, so that the same fit gives the same weights twice.

    Args:
        network: To be trained, on its device.
        rows: The training rows.
        config: Optimiser, rate and decay.
        rows_seen: Rows times epochs; a small fit is over before the kernels are compiled.
    """
    if (
        isinstance(network, Network)
        and _on_cpu(network, rows)
        and covers(network.config)
        and rows_seen >= _SMALL_FIT
    ):
        return FusedLearner(network, rows, config)
    return TorchLearner(network, rows, config)


def _on_cpu(network: nn.Module, rows: Arrays) -> bool:
    # The kernels compute in float32.
    return rows.scores.is_cpu and all(
        p.is_cpu and p.dtype == torch.float32 for p in network.parameters()
    )
