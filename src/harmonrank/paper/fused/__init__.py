"""The network on the CPU at full speed: tables and kernels that stand in for it, and say when."""

from harmonrank.paper.fused._relation import Relation
from harmonrank.paper.fused._scorer import Scorer, covers
from harmonrank.paper.fused._step import Step
from harmonrank.paper.fused._weights import Weights

__all__ = ["Relation", "Scorer", "Step", "Weights", "covers"]
