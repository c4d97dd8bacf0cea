"""The network on the CPU at full speed: tables, and kernels that score and train."""

from harmonrank.paper.fused._backward import TrainingStep
from harmonrank.paper.fused._folding import Relation, WeightVector
from harmonrank.paper.fused._forward import Scorer

__all__ = ["Relation", "Scorer", "TrainingStep", "WeightVector"]
