"""The network on the CPU at full speed: tables and kernels that stand in for it, and say when."""

from harmonrank.model.fused._relation import Relation
from harmonrank.model.fused._scorer import Scorer, covers
from harmonrank.model.fused._step import Step
from harmonrank.model.fused._weights import Weights

__all__ = ["Relation", "Scorer", "Step", "Weights", "covers"]
