"""Config of the network with one head per objective: its size, and the arrays that it makes."""

__all__ = ["FARTHEST", "REACH", "SMALLEST_SCORE", "ObjectiveConfig"]

from dataclasses import dataclass, replace

from harmonrank.support.options import Count, Width
from harmonrank.support.storage.arrays import Array

REACH = 2.5
"""The buckets of a score span so many standard deviations of its logit to either side."""

FARTHEST = 8.0
"""Beyond this a standardised logit tells the upstream model's clipping, not its opinion."""

SMALLEST_SCORE = 1e-7
"""A score of 0 or 1 has no logit; so close to it float32 still tells scores apart."""

_BOUNDS = {"prior.centre": (-1e3, 1e3), "prior.spread": (1e-6, 1e3), "share": (0.0, 1.0)}


@dataclass(frozen=True)
class ObjectiveConfig:
    """The size of the network.

    Attributes:
        objectives: How many scores are fused, and how many heads there are.
        context_slots: How many codes each context feature has, the unknown one included.
        width: Width d of a score's embedding.
        key_width: Width d_k of queries, keys and values.
        buckets: Rows of each score's table; a score's embedding is interpolated between two.
        context_width: Width of the embedding of each context feature.
    """

    objectives: Count
    context_slots: tuple[Count, ...] = ()
    width: Width = 8
    key_width: Width = 16
    buckets: Width = 16
    context_width: Width = 8

    @property
    def context_features(self) -> int:
        """How many features describe the context."""
        return len(self.context_slots)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array of the network, by name.

        >>> ObjectiveConfig(objectives=5).shapes["scores.table"]
        (5, 16, 8)
        """
        M, d, k, e = self.objectives, self.width, self.key_width, self.context_width
        slots, features = sum(self.context_slots), len(self.context_slots)
        return {
            "prior.centre": (M,),
            "prior.spread": (M,),
            "prior.slope": (M,),
            "prior.intercept": (M,),
            "share": (M,),
            "scores.table": (M, self.buckets, d),
            "context.table": (slots, e),
            "relation_aware.query": (k, d),
            "relation_aware.key": (k, d),
            "relation_aware.value": (k, d),
            "relation_aware.context_query": (M, k, features * e),
            "relation_aware.context_bias": (M, k),
            "relation_aware.context_key": (k, k),
            "relation_aware.context_value": (k, k),
            "relation_aware.output": (M, k),
            "gated.gate": (d,),
            "gated.bias": (M,),
            "gated.output": (M, M * d),
            "linear.output": (M, M * d),
            "linear.bias": (M,),
            "linear.offset": (slots, M),
            "linear.slope": (slots, M, M),
        }

    @property
    def arrays(self) -> dict[str, Array]:
        """What each array of a stored network must be."""
        declared = {name: Array(shape, "float32") for name, shape in self.shapes.items()}
        for name, (low, high) in _BOUNDS.items():
            declared[name] = replace(declared[name], low=low, high=high)
        return declared
