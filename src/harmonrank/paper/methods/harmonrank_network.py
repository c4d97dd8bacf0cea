"""The paper's architecture with one head per objective, as a residual on the closed form."""

__all__ = ["HarmonRankNetwork", "NetworkMethodConfig"]

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from harmonrank.data import ContextEncoder, Log
from harmonrank.fusion.fitting.fit import Fit
from harmonrank.fusion.fitting.row_blocks import EXAM_ROWS, RowsInBlocks
from harmonrank.fusion.probability import ProbabilityMethod, weighted_sum
from harmonrank.paper.health import Health
from harmonrank.paper.methods.neural import History, NeuralState
from harmonrank.paper.objective_config import ObjectiveConfig
from harmonrank.paper.objective_scorer import ObjectiveScorer
from harmonrank.support.extras import needs_extras
from harmonrank.support.options import Count, Positive, Rate, Width
from harmonrank.support.storage.arrays import Array

if TYPE_CHECKING:
    from harmonrank.paper.objective_network import ObjectiveNetwork

_SIZE = ("width", "key_width", "buckets", "context_width")
_BOUNDS = (("prior.centre", -1e3, 1e3), ("prior.spread", 1e-6, 1e3), ("share", 0.0, 1.0))


@dataclass(frozen=True)
class NetworkMethodConfig:
    """Size of the network (see ObjectiveConfig), its training (TrainingConfig) and shrinkage.

    Attributes:
        batch_rows: Rows per step; a 160th of the rows, from 256 to 4,096, if left out.
        ridge: How strongly what the heads add to the closed form is pulled to 0, in rows.
        slope_ridge: The same for slopes that depend on the context.
        loss: The 'likelihood' of each head's labels, or the 'rank' loss of the fused score.
    """

    width: Width = 8
    key_width: Width = 16
    buckets: Width = 8
    context_width: Width = 8
    learning_rate: Rate = 0.01
    epochs: Count = 6
    batch_rows: Count | None = None
    ridge: Positive = 30.0
    slope_ridge: Positive = 100.0
    loss: Literal["likelihood", "rank"] = "likelihood"


class HarmonRankNetwork(ProbabilityMethod):
    """Fuses s = Σ_m w_m p_m/(π_m(1−π_m)), eq. 12 of docs/network.md, p_m by a head of the network.

    Scores pass smooth buckets on their logit, self-attention between objectives, cross-attention
    with the context as the query, a gate and a linear path. Every head begins as the closed form,
    its own score calibrated, and learns what to add by its likelihood, shrunk by a ridge. How much
    of that each head keeps, from nothing to all, the validation rows decide.
    """

    name = "harmonrank-network"
    needs = "torch"
    takes = ("graded",)
    fits_blocks = True
    most_valid = EXAM_ROWS
    Config = NetworkMethodConfig
    State = NeuralState

    encoder: ContextEncoder
    history: History = ()
    health: Health | None = None
    """Whether each path of the network does something; known once fitted."""
    _weights: Mapping[str, np.ndarray]
    _scorer: ObjectiveScorer

    def _fit(self, fit: Fit) -> None:
        from harmonrank.paper.methods.harmonrank_network_fit import learn

        self.encoder = ContextEncoder.fit(fit.train.context)
        size = self._size(fit.train.scores.shape[1], self.encoder.slots)
        weights, self.history, self.health = learn(self, fit, size)
        self._use(size, weights)

    def _fit_blocks(self, fit: RowsInBlocks) -> None:
        from harmonrank.paper.methods.harmonrank_network_fit import learn

        self.encoder = fit.encoder
        size = self._size(len(fit.weights), self.encoder.slots)
        weights, self.history, self.health = learn(self, fit.sampled(), size, fit)
        self._use(size, weights)

    def _size(self, objectives: int, slots: tuple[int, ...]) -> ObjectiveConfig:
        options = asdict(self.config)
        return ObjectiveConfig(objectives, slots, **{name: options[name] for name in _SIZE})

    def _use(self, size: ObjectiveConfig, weights: Mapping[str, np.ndarray]) -> None:
        self._weights, self._scorer = weights, ObjectiveScorer(size, weights)

    @property
    def network(self) -> "ObjectiveNetwork":
        """The network in PyTorch, with the fitted weights."""
        with needs_extras("The network itself"):
            import torch

            from harmonrank.paper.objective_network import ObjectiveNetwork

        size = self._size(len(self.schema.names), self.encoder.slots)
        network = ObjectiveNetwork(size).eval()
        network.load_state_dict({n: torch.from_numpy(w.copy()) for n, w in self._weights.items()})
        return network

    def _probabilities(self, log: Log) -> np.ndarray:
        return self._scorer(log.scores, log.codes(self.encoder))

    def _score_request(
        self, scores: np.ndarray, context: Mapping[str, Any], weights: np.ndarray | None
    ) -> np.ndarray:
        codes = np.tile(self.encoder.encode_values(context), (len(scores), 1))
        weights = self.objective_weights() if weights is None else weights
        return weighted_sum(self._scorer(scores, codes), self._per_unit(weights))

    def explain(
        self,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
    ) -> dict[str, dict[str, float]]:
        """Return facts of each objective: also how much of its learned residual is kept."""
        facts = super().explain(weights, value)
        kept = self._weights["share"].astype(np.float64).tolist()
        return {**facts, "residual_share": dict(zip(self.schema.names, kept, strict=True))}

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        health = None if self.health is None else asdict(self.health)
        parts = {"context": self.encoder.to_list(), "history": self.history, "health": health}
        return parts, dict(self._weights)

    def _declare(self, state: NeuralState) -> dict[str, Array]:
        size = self._size(len(self.schema.names), state.encoder(self.schema).slots)
        declared = {name: Array(shape, "float32") for name, shape in size.shapes.items()}
        for name, low, high in _BOUNDS:
            declared[name] = replace(declared[name], low=low, high=high)
        return declared

    def _restore(self, state: NeuralState, arrays: dict[str, np.ndarray]) -> None:
        self.encoder = state.encoder(self.schema)
        self._use(self._size(len(self.schema.names), self.encoder.slots), arrays)
        self.health, self.history = state.health, state.known_history()
