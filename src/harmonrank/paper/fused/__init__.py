"""The network on the CPU at full speed: tables and kernels that stand in for it, and say when."""

from harmonrank.paper.fused._relation import Relation
from harmonrank.paper.fused._scorer import Scorer, covers
from harmonrank.paper.fused._step import FusedStep
from harmonrank.paper.fused._weights import NetworkWeights

__all__ = ["FusedStep", "NetworkWeights", "Relation", "Scorer", "covers"]
