"""ParallelLearner: one training step by the workers of an engine, on one global batch.

Each worker has a share of the rows: of all, or of the buffer that they are read into. A step goes
twice around: workers score their rows of the batch, and the scores are gathered; the loss, whose
soft ranks and AUCs are those of the whole batch, gives a slope for every row; workers take the
slopes of their rows back through the network, and the gradients are added in the order of the
workers. So N workers with b rows each take the step of one worker with N·b rows, up to the rounding
of sums. A loss of each worker's own rows would not: a rank among b rows is not a rank among N·b.
"""

__all__ = ["ParallelLearner"]

from copy import deepcopy
from itertools import pairwise
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from harmonrank.engine import Engine
from harmonrank.paper import Network
from harmonrank.paper.fused import Step, Weights, covers
from harmonrank.paper.training.arrays import Arrays
from harmonrank.paper.training.decay import Decay, decayed, optimizer_of
from harmonrank.paper.training.learner import (
    LossFunction,
    LossSlope,
    SlopeFunction,
    StepTaken,
    differentiated,
)
from harmonrank.paper.training_config import TrainingConfig


class ParallelLearner:
    """Takes steps by workers; weights and the optimiser's state are here, rows are there.

    Args:
        network: To be trained.
        rows: The training rows; workers get scores and context, labels stay here.
        config: Optimiser, rate and decay.
        engine: Whose workers take the steps.
        slope: See `FusedLearner`.
    """

    kind: ClassVar = "parallel"

    def __init__(
        self,
        network: nn.Module,
        rows: Arrays,
        config: TrainingConfig,
        engine: Engine,
        slope: SlopeFunction | None = None,
    ) -> None:
        self._network, self._engine, self._slope = network, engine, slope
        self._vector = _vector_of(network)
        self._flat = nn.Parameter(torch.from_numpy(self._vector.read(network)).float())
        self._flat.grad = torch.zeros_like(self._flat)
        self.optimizer = optimizer_of(config, [self._flat])
        acts = torch.from_numpy(self._vector.marked(network)).float()
        self._decay = Decay(config.weight_decay, self.optimizer, [(self._flat, acts)])
        self._steps = self._fills = 0
        self._dealt: list[tuple[int, Any, Any]] = []
        shared = engine.put(deepcopy(network))
        self._shares = [engine.keep(_Share, shared) for _ in range(engine.workers)]
        self.use(rows)

    def use(self, rows: Arrays) -> None:
        """Deal other rows out to workers, in place of those before."""
        self._rows, engine, self._fills = rows, self._engine, self._fills + 1
        self._edges = np.linspace(0, len(rows), engine.workers + 1).astype(np.int64)
        scores, context = rows.scores.numpy(), rows.context.numpy()
        self._dealt = []  # those before are given back first
        # They go along with every call, as promises that cost nothing: so the worker that takes the
        # place of a lost one has them at hand.
        self._dealt = [
            (self._fills, engine.put(scores[a:b]), engine.put(context[a:b]))
            for a, b in pairwise(self._edges.tolist())
        ]

    def step(self, index: NDArray[np.int64], loss: LossFunction) -> StepTaken:
        """Gather scores, find the slope of the whole batch, and reduce gradients."""
        assert self._flat.grad is not None
        engine, self._steps = self._engine, self._steps + 1
        weights = engine.put(self._flat.detach().numpy().copy())
        cuts = np.searchsorted(index, self._edges)  # rows of a batch are in order
        mine = [
            engine.put(index[a:b] - first)
            for (a, b), first in zip(pairwise(cuts.tolist()), self._edges, strict=False)
        ]
        told = [
            share.call(_Share.forward, *rows, self._steps, weights, own)
            for share, rows, own in zip(self._shares, self._dealt, mine, strict=True)
        ]
        fused = np.concatenate([engine.get(promise) for promise in told])
        batch = self._rows.batch(torch.from_numpy(index))
        found = self._slope_of(fused, batch, loss)
        if found.slope is not None:
            slopes = np.split(found.slope, cuts[1:-1])
            calls = zip(self._shares, self._dealt, mine, slopes, strict=True)
            told = [
                share.call(_Share.backward, *rows, self._steps, weights, own, slope)
                for share, rows, own, slope in calls
            ]
            parts = [engine.get(promise) for promise in told]
            total = np.sum([*parts, *self._own_gradient()], axis=0, dtype=np.float64)
            self._flat.grad.copy_(torch.from_numpy(total))
            self._decay.step()
            self.optimizer.step()
        return StepTaken(found.loss, found.gradient_share)

    def _slope_of(self, fused: NDArray[np.float32], batch: Arrays, loss: LossFunction) -> LossSlope:
        """Return the slope of the whole batch; a loss may look at the network's weights too."""
        if self._slope is not None and fused.ndim == 1:
            return self._slope(fused, batch)
        if not _is_covered(self._network):
            self.publish()
            self._network.zero_grad(set_to_none=True)
        return differentiated(loss, fused, batch)

    def _own_gradient(self) -> list[np.ndarray]:
        """Return the gradient of what a loss adds for the weights themselves, such as a ridge."""
        known = [p.grad is not None for p in self._network.parameters()]
        return [] if _is_covered(self._network) or not any(known) else [_gradient(self._network)]

    def publish(self) -> None:
        """Copy the weights into the network."""
        self._vector.write(self._network, self._flat.detach().numpy())

    def take_over(self) -> None:
        """Copy the weights out of the network."""
        with torch.no_grad():
            self._flat.copy_(torch.from_numpy(self._vector.read(self._network)))


class _Share:
    """The network on a worker, and the rows that it was given last."""

    def __init__(self, network: nn.Module) -> None:
        self._network = deepcopy(network)  # what the engine hands over is shared, read-only
        self._vector = _vector_of(self._network)
        self._fill = 0
        self._step: Step | None = None
        self._rows: tuple[torch.Tensor, ...] = ()
        self._done, self._output = -1, torch.empty(0)

    def _use(self, fill: int, scores: Any, context: Any) -> None:
        """Take rows that are not those of before, which their number tells."""
        if fill == self._fill:
            return
        rows, known = (np.array(scores), np.array(context)), cast("Any", self._network)
        if not _is_covered(known):
            self._rows = tuple(map(torch.from_numpy, rows))
        elif self._step is None:
            self._step = Step(known, *rows)
        else:
            self._step.use(*rows)
        self._fill = fill

    def forward(
        self, fill: int, scores: Any, context: Any, number: int, weights: Any, index: Any
    ) -> np.ndarray:
        """Return the network's output on some rows."""
        self._use(fill, scores, context)
        self._done = number
        if self._step is not None:
            self._step.weights.vector[:] = weights
            return self._step.forward(np.array(index))
        self._vector.write(self._network, weights)
        self._network.train()
        chosen = torch.from_numpy(np.array(index))
        self._output = self._network(*(rows.index_select(0, chosen) for rows in self._rows))
        found: np.ndarray = self._output.detach().numpy()
        return found

    def backward(
        self,
        fill: int,
        scores: Any,
        context: Any,
        number: int,
        weights: Any,
        index: Any,
        slope: Any,
    ) -> np.ndarray:
        """Return the gradient of all weights, given the slopes of the rows of a step."""
        if self._done != number:  # a worker that was lost in between begins the step again
            self.forward(fill, scores, context, number, weights, index)
        if self._step is not None:
            self._step.backward(np.array(slope))
            return self._step.gradient.vector.copy()
        self._network.zero_grad(set_to_none=False)
        if self._output.numel():
            self._output.backward(torch.from_numpy(np.array(slope)))  # type: ignore[no-untyped-call]
        return _gradient(self._network)


def _gradient(network: nn.Module) -> np.ndarray:
    parts = [
        torch.zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)
        for p in network.parameters()
    ]
    found: np.ndarray = torch.cat(parts).numpy()
    return found


def _is_covered(network: nn.Module) -> bool:
    return isinstance(network, Network) and covers(network.config)


class _Vector(Protocol):
    """All weights of a network as one vector."""

    def read(self, network: Any) -> np.ndarray: ...

    def write(self, network: Any, vector: np.ndarray) -> None: ...

    def marked(self, network: Any) -> np.ndarray: ...


def _vector_of(network: nn.Module) -> _Vector:
    return _FusedVector() if _is_covered(network) else _TorchVector()


class _FusedVector:
    """As the kernels lay them out."""

    def read(self, network: Network) -> np.ndarray:
        """Return the weights."""
        return Weights.of(network).vector.astype(np.float32)

    def write(self, network: Network, vector: np.ndarray) -> None:
        """Set the weights."""
        weights = Weights.of(network)
        weights.vector[:] = vector
        weights.write(network)

    def marked(self, network: Network) -> np.ndarray:
        """Return 1 where decay acts."""
        return Weights.of(network).marked(decayed)


class _TorchVector:
    """In the order of the parameters."""

    def read(self, network: nn.Module) -> np.ndarray:
        """Return the weights."""
        found: np.ndarray = parameters_to_vector(network.parameters()).detach().numpy().copy()
        return found

    def write(self, network: nn.Module, vector: np.ndarray) -> None:
        """Set the weights."""
        with torch.no_grad():
            vector_to_parameters(torch.from_numpy(np.array(vector)), network.parameters())

    def marked(self, network: nn.Module) -> np.ndarray:
        """Return 1 where decay acts."""
        parts = [np.full(p.numel(), decayed(name)) for name, p in network.named_parameters()]
        return np.concatenate(parts).astype(np.float32)
