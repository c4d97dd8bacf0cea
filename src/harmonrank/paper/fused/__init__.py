"""The network on the CPU at full speed: tables and kernels that stand in for it, and say when."""

from harmonrank.paper.fused._backward import Step
from harmonrank.paper.fused._folding import Relation, Weights
from harmonrank.paper.fused._forward import Scorer, covers

__all__ = ["Relation", "Scorer", "Step", "Weights", "covers"]
