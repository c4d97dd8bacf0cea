"""The published method: the network of the paper trained on its rank-sum AUC loss."""

__all__ = ["PUBLISHED", "HarmonRankPaper", "PaperConfig"]

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from harmonrank.paper.methods.neural import NeuralConfig, NeuralMethod
from harmonrank.support.errors import UsageError
from harmonrank.support.options import Positive

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
