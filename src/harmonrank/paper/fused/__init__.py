"""The network on the CPU at full speed: its tables and kernels, and which networks they cover."""

from harmonrank.paper.fused._backward import TrainingStep
from harmonrank.paper.fused._folding import Relation, WeightVector
from harmonrank.paper.fused._forward import Scorer, covers

__all__ = ["Relation", "Scorer", "TrainingStep", "WeightVector", "covers"]
