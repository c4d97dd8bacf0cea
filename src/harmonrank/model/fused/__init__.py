"""The network on the CPU at full speed: tables and kernels that stand in for it, and say when."""

from harmonrank.model.fused._scorer import Scorer, covers
from harmonrank.model.fused._step import Step

__all__ = ["Scorer", "Step", "covers"]
