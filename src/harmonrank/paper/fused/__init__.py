"""The network on the CPU at full speed: tables and kernels that stand in for it, and say when."""

from harmonrank.paper.fused._backward import TrainingStep
from harmonrank.paper.fused._folding import Relation, WeightVector
from harmonrank.paper.fused._forward import Scorer, covers

__all__ = ["Relation", "Scorer", "TrainingStep", "WeightVector", "covers"]
