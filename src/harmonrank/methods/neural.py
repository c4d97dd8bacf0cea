"""Neural methods: the paper's network trained with a loss of the method's choice.

PyTorch is imported when a network is trained or looked into, and not to score with it.
"""

__all__ = ["History", "NeuralConfig", "NeuralMethod", "NeuralState"]

import sys
from abc import abstractmethod
from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from harmonrank.data import ContextEncoder, Log, Source, read_log
from harmonrank.data.arrays import Array
from harmonrank.methods.base import Fit, Method
from harmonrank.methods.state import ContextState
from harmonrank.model import NetworkConfig
from harmonrank.model.fused import Scorer, covers
from harmonrank.model.knots import Scale
from harmonrank.model.stored import network_arrays
from harmonrank.options import Buckets, Count, Nonnegative, Rate, Width

if TYPE_CHECKING:
    from torch import Tensor

    from harmonrank.model import Network
    from harmonrank.training import Arrays, LossSlope, LossValue

_KNOTS = "scores.knots"

History = tuple[tuple[float, float, float | None], ...]
"""Of every epoch its loss, validation AUC-sum and share of items with a gradient."""


@dataclass(frozen=True)
class NeuralConfig:
    """Size and switches of the network (see NetworkConfig) and its training (TrainingConfig).

    Attributes:
        weighting: Whether the objectives' weights stay as given or move while the network learns
            (see `harmonrank.methods.weighting`).
    """

    width: Width = 2
    key_width: Width = 32
    buckets: Buckets | None = 300
    scale: Scale = "raw"
    interpolate: bool = False
    self_attention: bool = True
    personalised: bool = True
    cross_attention: bool = True
    gate: bool = True
    linear: bool = True
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: Rate = 0.01
    weight_decay: Nonnegative = 0.0
    batch_rows: Count = 10_240
    steps: Count = 2_000
    patience_steps: Count = 400
    epochs: Count | None = None
    patience: Count | None = None
    weighting: Literal["fixed", "pantheon", "min-norm"] = "fixed"

    def part(self, kind: type) -> dict[str, Any]:
        """Return the options that another config has too."""
        shared = {field.name for field in fields(kind)}
        return {key: value for key, value in asdict(self).items() if key in shared}


class NeuralState(ContextState, forbid_unknown_fields=True):
    """The values of the context columns, and how the training went."""

    history: list[tuple[float | None, float | None, float | None]]

    def known_history(self) -> History:
        """Return the history with NaN for what was not finite, which is stored as null."""
        return tuple((_known(a), _known(b), c) for a, b, c in self.history)


class NeuralMethod(Method):
    """Trains the paper's network; a subclass gives the loss.

    What a loss must know from step to step it keeps in `_memory` and changes in place: the
    tensors are part of every checkpoint.
    """

    Config = NeuralConfig
    State = NeuralState

    encoder: ContextEncoder
    history: History = ()
    _memory: dict[str, "Tensor"]
    _weights: Mapping[str, np.ndarray]
    _scorer: Scorer | None = None
    _built: "Network | None" = None

    @abstractmethod
    def _loss(self, fused: "Tensor", batch: "Arrays", weights: "Tensor") -> "LossValue":
        """Return the loss of a batch's fused scores."""

    def _slope(self, fused: np.ndarray, batch: "Arrays", weights: "Tensor") -> "LossSlope":
        """Return the loss and its slope at once, where that is faster than a graph."""
        raise NotImplementedError

    def _first_memory(self, fit: Fit) -> dict[str, "Tensor"]:  # noqa: ARG002
        """Return what the loss remembers before the first step."""
        return {}

    def _remember(self, fused: "Tensor", batch: "Arrays") -> None:
        """Change the memory after the loss of a step."""

    def _fit(self, fit: Fit) -> None:
        from harmonrank.methods.neural_fit import learn

        self.encoder = ContextEncoder.fit(fit.train.context)
        network = self._new_network(fit).to(fit.device)
        network, self.history = learn(self, fit, network, self.config.epochs)
        self._use(network)

    def updated(self, table: Source, *, passes: int = 1, seed: int = 0) -> Self:
        """Return a new model that went on learning: some passes over newer rows.

        It starts from the weights of this one. The optimiser starts afresh, context values keep the
        codes they have, and no row is set aside: what the last pass leaves is kept.

        Args:
            table: Rows with labels, of the columns that the fit had.
            passes: How often each row is seen.
            seed: Decides the order of rows.
        """
        from harmonrank.methods.neural_fit import learn

        log = self._expected(read_log(table, self.schema).counted())
        weights = self.schema.weight_vector
        fit = Fit(log, log.take(np.arange(0)), weights, seed, "cpu", lambda _: None, None)
        newer = copy(self)
        # Who updates once does so again and again: kernels are worth compiling.
        network, _ = learn(newer, fit, deepcopy(self.network), passes, rows_seen=sys.maxsize)
        newer._use(network)
        newer.prevalence = log.prevalence()
        return newer

    def _use(self, network: "Network") -> None:
        self._built, self._scorer = network.cpu().eval(), None
        self._weights = {name: value.numpy() for name, value in network.state_dict().items()}

    @property
    def network(self) -> "Network":
        """The network with the fitted weights."""
        if self._built is None:
            import torch

            from harmonrank.model import Network

            config = self._network_config(len(self.schema.names))
            network = Network(config, knots=self._weights[_KNOTS]).eval()
            weights = {name: torch.from_numpy(array) for name, array in self._weights.items()}
            network.load_state_dict(weights)
            self._built = network
        return self._built

    def _network_config(self, objectives: int) -> NetworkConfig:
        return NetworkConfig(objectives, self.encoder.slots, **self.config.part(NetworkConfig))

    def _new_network(self, fit: Fit) -> "Network":
        import torch

        from harmonrank.model import Network

        scores, weight = fit.train.scores, fit.train.sample_weight
        # A row of weight 0 counts as removed, so it must not move a bucket.
        seen = scores if weight is None else scores[weight > 0]
        generator = torch.Generator().manual_seed(fit.seed)
        return Network(self._network_config(scores.shape[1]), generator, scores=seen)

    def _score(self, log: Log) -> np.ndarray:
        return self._fuse(log.scores, self.encoder.encode(log.context))

    def _score_request(
        self, scores: np.ndarray, context: Mapping[str, Any], weights: np.ndarray | None
    ) -> np.ndarray:
        if weights is not None:
            return super()._score_request(scores, context, weights)
        return self._fuse(scores, np.tile(self.encoder.encode_values(context), (len(scores), 1)))

    def _fuse(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        scores, config = (
            scores.astype(np.float32, copy=False),
            self._network_config(scores.shape[1]),
        )
        if not covers(config):
            from harmonrank.methods.neural_fit import forward

            return forward(self.network, scores, codes)
        if self._scorer is None:
            self._scorer = Scorer(config, self._weights)
        return self._scorer(scores, codes)

    def attention(self, table: Source) -> np.ndarray | None:
        """Return the mean over rows of A_r, how much each objective listens to each other.

        (M, M), each row adds up to 1; None for a network without self-attention.
        """
        if not self.config.self_attention:
            return None
        from harmonrank.methods.neural_fit import mean_attention

        log = self._expected(read_log(table, self.schema, labels=False))
        return mean_attention(self.network, log.scores.astype(np.float32, copy=False))

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        parts = {"context": self.encoder.to_list(), "history": self.history}
        return parts, dict(self._weights)

    def _declare(self, state: NeuralState) -> dict[str, Array]:
        M, slots = len(self.schema.names), state.encoder(self.schema).slots
        return network_arrays(NetworkConfig(M, slots, **self.config.part(NetworkConfig)))

    def _restore(self, state: NeuralState, arrays: dict[str, np.ndarray]) -> None:
        self.encoder = state.encoder(self.schema)
        self._weights, self._built, self._scorer = arrays, None, None
        self.history = state.known_history()


def _known(value: float | None) -> float:
    return float("nan") if value is None else value
