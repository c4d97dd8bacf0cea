"""Neural methods: the paper's network trained with a loss of the method's choice."""

__all__ = ["NeuralConfig", "NeuralMethod"]

import hashlib
import json
import sys
from abc import abstractmethod
from dataclasses import asdict, dataclass, fields
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from harmonrank.data import ContextEncoder, Log, Source, read_log
from harmonrank.methods.base import Fit, Method
from harmonrank.methods.weighting import weighting_of
from harmonrank.metrics import auc
from harmonrank.model import Network, NetworkConfig
from harmonrank.model.fused import Scorer, covers

if TYPE_CHECKING:
    from harmonrank.training import Arrays, LossSlope, LossValue

_SCORE_ROWS = 65_536
_MEMORY = "memory"


@dataclass(frozen=True)
class NeuralConfig:
    """Size and switches of the network (see NetworkConfig) and its training (TrainingConfig).

    Attributes:
        weighting: Whether the objectives' weights stay as given or move while the network learns
            (see `harmonrank.methods.weighting`).
    """

    width: int = 2
    key_width: int = 32
    buckets: int | None = 300
    self_attention: bool = True
    personalised: bool = True
    cross_attention: bool = True
    gate: bool = True
    linear: bool = True
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    batch_rows: int = 10_240
    steps: int = 2_000
    patience_steps: int = 400
    epochs: int | None = None
    patience: int | None = None
    weighting: Literal["fixed", "pantheon", "min-norm"] = "fixed"

    def part(self, kind: type) -> dict[str, Any]:
        """Return the options that another config has too."""
        shared = {field.name for field in fields(kind)}
        return {key: value for key, value in asdict(self).items() if key in shared}


class NeuralMethod(Method):
    """Trains the paper's network; a subclass gives the loss.

    What a loss must know from step to step it keeps in `_memory` and changes in place: the
    tensors are part of every checkpoint.
    """

    Config = NeuralConfig

    _encoder: ContextEncoder
    _network: Network
    _memory: dict[str, Tensor]
    _scorer: Scorer | None = None

    @abstractmethod
    def _loss(self, fused: Tensor, batch: "Arrays", weights: Tensor) -> "LossValue":
        """Return the loss of a batch's fused scores."""

    def _slope(self, fused: np.ndarray, batch: "Arrays", weights: Tensor) -> "LossSlope":
        """Return the loss and its slope at once, where that is faster than a graph."""
        raise NotImplementedError

    def _first_memory(self, fit: Fit) -> dict[str, Tensor]:  # noqa: ARG002
        """Return what the loss remembers before the first step."""
        return {}

    def _remember(self, fused: Tensor, batch: "Arrays") -> None:
        """Change the memory after the loss of a step."""

    def _fit(self, fit: Fit) -> None:
        self._encoder = ContextEncoder.fit(fit.train.context)
        network = self._build(fit.train.scores.shape[1], fit.seed).to(fit.device)
        self._learn(fit, network, self.config.epochs)

    def update(self, table: Source, *, passes: int = 1, seed: int = 0) -> Self:
        """Go on learning: some passes over newer rows, from the present weights.

        The optimiser starts afresh, context values keep the codes they have, and no row is set
        aside: what the last pass leaves is kept.

        Args:
            table: Rows with labels, of the columns that the fit had.
            passes: How often each row is seen.
            seed: Decides the order of rows.
        """
        log = table if isinstance(table, Log) else read_log(table, self.schema)
        weights = self.schema.weight_vector
        fit = Fit(log, log.take(np.arange(0)), weights, seed, "cpu", lambda _: None, None)
        # Who updates once does so again and again: kernels are worth compiling.
        self._learn(fit, self._network, passes, rows_seen=sys.maxsize)
        self._scorer = None
        self.prevalence = log.prevalence()
        return self

    def _learn(
        self, fit: Fit, network: Network, epochs: int | None, rows_seen: int | None = None
    ) -> None:
        """Train a network, and keep its epoch that ranks the validation rows best, if any."""
        from harmonrank.training import TrainingConfig, train

        rows, valid = self._arrays(fit.train, fit.device), self._arrays(fit.valid, fit.device)
        weighting = weighting_of(self.config.weighting, fit)
        first = self._first_memory(fit) | weighting.memory
        self._memory = {name: value.to(fit.device) for name, value in first.items()}
        weighting.memory = self._memory
        _attach(network, self._memory)

        def loss(fused: Tensor, batch: "Arrays") -> "LossValue":
            weights = weighting.weights(fused, lambda s, w: self._loss(s, batch, w).loss)
            value = self._loss(fused, batch, weights)
            self._remember(fused.detach(), batch)
            return value

        def slope(fused: np.ndarray, batch: "Arrays") -> "LossSlope":
            scores = torch.from_numpy(fused)
            weights = weighting.weights(scores, lambda s, w: self._loss(s, batch, w).loss)
            value = self._slope(fused, batch, weights)
            self._remember(scores, batch)
            return value

        later_is_better = count()

        def validate(network: Network) -> float:
            if not fit.valid.rows:
                return float(next(later_is_better))
            per_objective = auc(
                _forward(network, valid.scores, valid.context),
                fit.valid.known_labels(),
                sample_weight=fit.valid.sample_weight,
            )
            weighting.epoch_ended(per_objective)
            # An objective that the validation rows do not show cannot vote.
            return float(np.nansum(fit.weights * per_objective))

        config = TrainingConfig(**{**self.config.part(TrainingConfig), "epochs": epochs})
        for event in train(
            network,
            rows,
            loss,
            validate,
            config,
            slope=slope if type(self)._slope is not NeuralMethod._slope else None,
            seed=fit.seed,
            checkpoint=fit.checkpoint,
            fingerprint=self._fingerprint(fit) if fit.checkpoint else "",
            rows_seen=rows_seen,
        ):
            fit.on_event(event)
        delattr(network, _MEMORY)
        self._network = network.cpu().eval()

    def _build(self, objectives: int, seed: int) -> Network:
        options = self.config.part(NetworkConfig)
        config = NetworkConfig(objectives, self._encoder.slots, **options)
        return Network(config, torch.Generator().manual_seed(seed))

    def _arrays(self, log: Log, device: str) -> "Arrays":
        from harmonrank.training import Arrays

        weight = log.sample_weight
        return Arrays(
            _tensor(log.scores.astype(np.float32, copy=False), device),
            _tensor(self._encoder.encode(log.context), device),
            _tensor(log.known_labels(), device),
            None if weight is None else _tensor(weight, device),
        )

    def _fingerprint(self, fit: Fit) -> str:
        """Return a digest of all that decides the fit's result."""
        digest = hashlib.sha256(
            json.dumps([self.name, asdict(self.config), fit.seed, fit.weights.tolist()]).encode()
        )
        for log in (fit.train, fit.valid):
            for array in (log.scores, log.known_labels(), self._encoder.encode(log.context)):
                digest.update(np.ascontiguousarray(array).data)
            if log.sample_weight is not None:
                digest.update(np.ascontiguousarray(log.sample_weight).data)
        return digest.hexdigest()

    def _score(self, log: Log) -> np.ndarray:
        scores = _tensor(log.scores.astype(np.float32, copy=False), "cpu")
        context = _tensor(self._encoder.encode(log.context), "cpu")
        if not covers(self._network.config):
            return _forward_torch(self._network, scores, context)
        if self._scorer is None or self._scorer.network is not self._network:
            self._scorer = Scorer(self._network)
        return self._scorer(scores.numpy(), context.numpy())

    @torch.no_grad()
    def attention(self, table: Source) -> np.ndarray | None:
        """Return the mean over rows of A_r, how much each objective listens to each other.

        (M, M), each row adds up to 1; None for a network without self-attention.
        """
        if not self._network.config.self_attention:
            return None
        log = table if isinstance(table, Log) else read_log(table, self.schema, labels=False)
        total = torch.zeros(log.scores.shape[1], log.scores.shape[1], dtype=torch.float64)
        scores = _tensor(log.scores.astype(np.float32, copy=False), "cpu")
        for first in range(0, log.rows, _SCORE_ROWS):
            x = self._network.scores(scores[first : first + _SCORE_ROWS])  # (rows, M, width)
            total += self._network.relation_aware.attend(x).double().sum(dim=0)
        mean: np.ndarray = (total / log.rows).numpy()
        return mean

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {name: value.numpy() for name, value in self._network.state_dict().items()}
        return {"context": self._encoder.to_list()}, arrays

    def _restore(self, parts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._encoder = ContextEncoder.from_list(parts["context"])
        self._network = self._build(len(self.schema.names), seed=0).eval()
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        self._network.load_state_dict(tensors)


def _tensor(array: np.ndarray, device: str) -> Tensor:
    # A column may be a view of a table's own memory, which must not be written to.
    return torch.from_numpy(np.require(array, requirements="W")).to(device)


def _attach(network: Network, memory: dict[str, Tensor]) -> None:
    """Make the memory of a loss a part of the network's state, as long as it is trained."""
    module = torch.nn.Module()
    for name, value in memory.items():
        module.register_buffer(name, value)
    network.add_module(_MEMORY, module)


def _forward(network: Network, scores: Tensor, context: Tensor) -> np.ndarray:
    """Score by the kernels on the CPU, where they cover the network, else by PyTorch."""
    if scores.is_cpu and covers(network.config):
        return Scorer(network)(scores.numpy(), context.numpy())
    return _forward_torch(network, scores, context)


@torch.no_grad()
def _forward_torch(network: Network, scores: Tensor, context: Tensor) -> np.ndarray:
    network.eval()
    parts = [
        network(scores[i : i + _SCORE_ROWS], context[i : i + _SCORE_ROWS])
        for i in range(0, max(len(scores), 1), _SCORE_ROWS)
    ]
    fused: np.ndarray = torch.cat(parts).double().cpu().numpy()
    return fused
