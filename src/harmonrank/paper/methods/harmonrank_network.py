"""The paper's architecture with one head per objective, as a residual on the closed form."""

__all__ = ["HarmonRankNetwork", "HeadsFit", "NetworkMethodConfig"]

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from harmonrank.fusion.protocol import TrainingRows, Traits
from harmonrank.paper.config import ObjectiveConfig
from harmonrank.paper.methods.neural import NETWORK_TRAITS, NetworkMethod, TrainedNetwork
from harmonrank.paper.objective_scorer import ObjectiveScorer
from harmonrank.support.options import Count, Positive, Rate, Width

if TYPE_CHECKING:
    from harmonrank.paper.objective_network import ObjectiveNetwork

_SIZE = ("width", "key_width", "buckets", "context_width")


@dataclass(frozen=True, eq=False)
class HeadsFit(TrainedNetwork):
    """A trained network with one head per objective."""

    config: ObjectiveConfig

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the probability of each objective, (rows, M)."""
        return self.scorer(scores, np.broadcast_to(codes, (len(scores), codes.shape[1])))

    def facts(self) -> dict[str, np.ndarray]:
        """Return how much of its learned residual each head keeps."""
        return {"residual_share": self.weights["share"].astype(np.float64)}

    @cached_property
    def scorer(self) -> ObjectiveScorer:
        """What scores with these arrays."""
        return ObjectiveScorer(self.config, self.weights)

    @cached_property
    def network(self) -> "ObjectiveNetwork":
        """The network in PyTorch, with these arrays."""
        from harmonrank.paper.objective_network import ObjectiveNetwork

        network: ObjectiveNetwork = self.loaded(ObjectiveNetwork(self.config))
        return network


@dataclass(frozen=True)
class NetworkMethodConfig:
    """Size of the network (see ObjectiveConfig), its training (TrainingConfig) and shrinkage.

    Attributes:
        batch_rows: Rows per step; a 160th of the rows, from 256 to 4,096, if left out.
        ridge: How strongly what the heads add to the closed form is pulled to 0, in rows.
        slope_ridge: The same for slopes that depend on the context.
        loss: The 'likelihood' of each head's labels, or the 'rank' loss of the fused score.
    """

    name: ClassVar[str] = "harmonrank-network"
    traits: ClassVar[Traits] = replace(NETWORK_TRAITS, probabilities=True)
    state: ClassVar[type] = HeadsFit

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

    def size(self, objectives: int, slots: tuple[int, ...]) -> ObjectiveConfig:
        """Return the size of the network for these scores and context codes."""
        options = asdict(self)
        return ObjectiveConfig(objectives, slots, **{name: options[name] for name in _SIZE})

    def fit(self, rows: TrainingRows) -> HeadsFit:
        """Train the heads on top of the closed form."""
        from harmonrank.paper.methods.harmonrank_network_fit import fit_heads

        return fit_heads(self, rows)


class HarmonRankNetwork(NetworkMethod):
    """Fuses s = Σ_m w_m p_m/(π_m(1−π_m)), eq. 12 of docs/network.md, p_m by a head of the network.

    Scores pass smooth buckets on their logit, self-attention between objectives, cross-attention
    with the context as the query, a gate and a linear path. Every head begins as the closed form,
    its own score calibrated, and learns what to add by its likelihood, shrunk by a ridge. How much
    of that each head keeps, from nothing to all, the validation rows decide.
    """

    Config = NetworkMethodConfig
