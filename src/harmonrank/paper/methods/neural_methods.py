"""The methods that train the paper's network: by the paper's rank-sum AUC loss, and by others.

All share the network's options and, except `reinforce`, the rate; docs/network.md has the results
of a search for better ones.
"""

__all__ = [
    "PUBLISHED",
    "Aucm",
    "HarmonRankPaper",
    "LabelAggregation",
    "LabelAggregationOptimal",
    "Mbce",
    "PairwiseLogistic",
    "PairwiseSquare",
    "PaperConfig",
    "Reinforce",
]

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from harmonrank.paper.methods.neural import NeuralConfig, NeuralMethod
from harmonrank.support.errors import UsageError
from harmonrank.support.options import Count, Positive

PUBLISHED: dict[str, Any] = {
    "buckets": 300,
    "scale": "raw",
    "interpolate": False,
    "optimizer": "sgd",
    "learning_rate": 1e-4,
    "schedule": "constant",
    "weight_decay": 0.0,
    "batch_rows": 10_240,
    "epochs": 500,
    "early_stopping": False,
    "pairs": "published",
    "strength": 8.0,
}
"""The paper's own recipe. It prints no scale of the buckets, which is read as ⌊s·B⌋, and no ε:
assumed is ε = 1, which at 10,240 rows makes soft ranks linear in the scores, as all from strength
8 on are (docs/soft-ranks.md)."""


@dataclass(frozen=True, kw_only=True)
class PaperConfig(NeuralConfig):
    """Options of the network and its training, and of the loss.

    Attributes:
        preset: 'tuned', the defaults here (docs/network.md says how they were chosen), or 'paper',
            the paper's own recipe; options given beside it hold.
        strength: How soft the ranks are.
        regularization: Of the soft ranks, 'l2' or 'kl'.
        pairs: 'each' counts an objective's pairs as one AUC; 'published' counts every pair the
            same, as the paper's loss does once it drops 1/(n⁺n⁻). See `rank_auc_loss`.
    """

    name: ClassVar[str] = "harmonrank-paper"
    fits_requests: ClassVar[bool] = True

    preset: Literal["tuned", "paper"] = "tuned"
    strength: Positive = 1.0
    regularization: Literal["l2", "kl"] = "l2"
    pairs: Literal["each", "published"] = "each"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.optimise == "requests" and self.pairs != "each":
            raise UsageError(
                "pairs='published' counts every pair of a batch the same, which requests have no "
                "part in; use pairs='each' with optimise='requests'."
            )


class HarmonRankPaper(NeuralMethod):
    """Minimises Σ_m w_m (1 − soft AUC_m) of the fused score, one soft rank for all objectives."""

    Config = PaperConfig

    def __init__(self, **options: Any) -> None:
        preset = PUBLISHED if options.get("preset") == "paper" else {}
        super().__init__(**{**preset, **options})


@dataclass(frozen=True, kw_only=True)
class MbceConfig(NeuralConfig):
    """Options of the network and its training."""

    name: ClassVar[str] = "mbce"


class Mbce(NeuralMethod):
    """Minimises Σ_m w_m BCE(σ(s), y_m) on the paper's network: the loss of Pantheon.

    Its best score is the logit of Σ_m w_m p_m / Σ_m w_m, so common objectives drown rare ones.
    """

    Config = MbceConfig


@dataclass(frozen=True, kw_only=True)
class LabelAggregationConfig(NeuralConfig):
    """Options of the network and its training, and what an event of an objective is worth.

    Attributes:
        values: 'plain' counts an event w_m, so events alone where weights are 1; 'optimal'
            counts it w_m/(π_m(1−π_m)), whose regression is the best score for Σ_m w_m AUC_m.
    """

    name: ClassVar[str] = "label-aggregation"

    values: Literal["plain", "optimal"] = "plain"


class LabelAggregation(NeuralMethod):
    """Minimises (s − Σ_m v_m y_m)² on the paper's network: IntEL's idea."""

    Config = LabelAggregationConfig


@dataclass(frozen=True, kw_only=True)
class LabelAggregationOptimalConfig(LabelAggregationConfig):
    """The same with values that are optimal unless told otherwise."""

    name: ClassVar[str] = "label-aggregation-optimal"

    values: Literal["plain", "optimal"] = "optimal"


class LabelAggregationOptimal(LabelAggregation):
    """Label aggregation whose values make it consistent for Σ_m w_m AUC_m."""

    Config = LabelAggregationOptimalConfig


@dataclass(frozen=True, kw_only=True)
class PairwiseSquareConfig(NeuralConfig):
    """Options of the network and its training, and the gap that a pair should have."""

    name: ClassVar[str] = "pairwise-square"

    margin: Positive = 1.0


class PairwiseSquare(NeuralMethod):
    """Minimises Σ_m w_m mean (margin − (s_i − s_j))² over pairs, on the paper's network.

    It costs no pairs: (margin − Δμ)² + Var⁺ + Var⁻ is the same number.
    """

    Config = PairwiseSquareConfig


@dataclass(frozen=True, kw_only=True)
class PairwiseLogisticConfig(NeuralConfig):
    """Options of the network and its training."""

    name: ClassVar[str] = "pairwise-logistic"


class PairwiseLogistic(NeuralMethod):
    """Minimises Σ_m w_m mean log(1 + exp(−(s_i − s_j))) over pairs, on the paper's network."""

    Config = PairwiseLogisticConfig


@dataclass(frozen=True, kw_only=True)
class AucmConfig(NeuralConfig):
    """Options of the network and its training, and of the inner problem.

    Attributes:
        margin: Gap of the class means beyond which nothing more is asked.
        inner_rate: Step size of a, b and α.
    """

    name: ClassVar[str] = "aucm"

    margin: Positive = 1.0
    inner_rate: Annotated[float, Meta(gt=0, le=0.5)] = 0.5


class Aucm(NeuralMethod):
    """Minimises AUCM over the network, a and b, and maximises it over α ≥ 0, step by step."""

    Config = AucmConfig


@dataclass(frozen=True, kw_only=True)
class ReinforceConfig(NeuralConfig):
    """Options of the network and its training, and of the policy.

    One reward answers for all rows of a batch, so what it says about a row gets lost in many:
    batches are small and drawn often.

    Attributes:
        sigma: Spread of the policy, in standard deviations of the batch's scores.
        draws: How often each batch is drawn; the mean reward of the other draws is the baseline.
    """

    name: ClassVar[str] = "reinforce"

    batch_rows: Count = 512
    learning_rate: float = 0.003
    steps: Count = 24_000
    patience_steps: Count = 24_000
    sigma: Positive = 0.1
    draws: Annotated[int, Meta(ge=2, le=4096)] = 32


class Reinforce(NeuralMethod):
    """Maximises E Σ_m w_m AUC_m(s + σ·noise) by policy gradient, on the paper's network.

    State: a batch's scores and context. Action: its sampled fused scores. Reward: the AUC-sum of
    the batch under them, less the mean reward of the batch's other draws.
    """

    Config = ReinforceConfig
