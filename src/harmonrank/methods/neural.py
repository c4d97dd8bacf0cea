"""Neural methods: the paper's network trained with a loss of the method's choice."""

__all__ = ["NeuralConfig", "NeuralMethod"]

import hashlib
import json
from abc import abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from harmonrank.data import ContextEncoder, Log
from harmonrank.methods.base import Fit, Method
from harmonrank.metrics import auc
from harmonrank.model import Network, NetworkConfig
from harmonrank.model.fused import Scorer, covers

if TYPE_CHECKING:
    from harmonrank.training import Arrays, LossValue

_SCORE_ROWS = 65_536


@dataclass(frozen=True)
class NeuralConfig:
    """Size and switches of the network (see NetworkConfig) and its training (TrainingConfig)."""

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
    epochs: int = 20
    patience: int = 4

    def part(self, kind: type) -> dict[str, Any]:
        """Return the options that another config has too."""
        shared = {field.name for field in fields(kind)}
        return {key: value for key, value in asdict(self).items() if key in shared}


class NeuralMethod(Method):
    """Trains the paper's network; a subclass gives the loss."""

    Config = NeuralConfig

    _encoder: ContextEncoder
    _network: Network

    @abstractmethod
    def _loss(self, fused: Tensor, batch: "Arrays", weights: Tensor) -> "LossValue":
        """Return the loss of a batch's fused scores."""

    def _fit(self, fit: Fit) -> None:
        from harmonrank.training import TrainingConfig, train

        self._encoder = ContextEncoder.fit(fit.train.context)
        rows, valid = self._arrays(fit.train, fit.device), self._arrays(fit.valid, fit.device)
        network = self._build(fit.train.scores.shape[1], fit.seed).to(fit.device)
        weights = torch.from_numpy(fit.weights).to(fit.device)

        def loss(fused: Tensor, batch: "Arrays") -> "LossValue":
            return self._loss(fused, batch, weights)

        def validate(network: Network) -> float:
            per_objective = auc(
                _forward(network, valid.scores, valid.context),
                fit.valid.known_labels(),
                sample_weight=fit.valid.sample_weight,
            )
            # An objective that the validation rows do not show cannot vote.
            return float(np.nansum(fit.weights * per_objective))

        config = TrainingConfig(**self.config.part(TrainingConfig))
        for event in train(
            network,
            rows,
            loss,
            validate,
            config,
            seed=fit.seed,
            checkpoint=fit.checkpoint,
            fingerprint=self._fingerprint(fit) if fit.checkpoint else "",
        ):
            fit.on_event(event)
        self._network = network.cpu().eval()

    def _build(self, objectives: int, seed: int) -> Network:
        options = self.config.part(NetworkConfig)
        config = NetworkConfig(objectives, self._encoder.slots, **options)
        return Network(config, torch.Generator().manual_seed(seed))

    def _arrays(self, log: Log, device: str) -> "Arrays":
        from harmonrank.training import Arrays

        weight = log.sample_weight
        return Arrays(
            torch.from_numpy(log.scores.astype(np.float32, copy=False)).to(device),
            torch.from_numpy(self._encoder.encode(log.context)).to(device),
            torch.from_numpy(log.known_labels()).to(device),
            None if weight is None else torch.from_numpy(weight).to(device),
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
        scores = torch.from_numpy(log.scores.astype(np.float32, copy=False))
        context = torch.from_numpy(self._encoder.encode(log.context))
        return _forward(self._network, scores, context)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {name: value.numpy() for name, value in self._network.state_dict().items()}
        return {"context": self._encoder.to_list()}, arrays

    def _restore(self, parts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._encoder = ContextEncoder.from_list(parts["context"])
        self._network = self._build(len(self.schema.names), seed=0).eval()
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        self._network.load_state_dict(tensors)


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
