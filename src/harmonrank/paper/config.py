"""Config: the size of the network, and what is left out of it."""

__all__ = ["NetworkConfig", "NetworkOptions"]

from dataclasses import dataclass

from harmonrank.paper.buckets import Scale, knot_count
from harmonrank.support.errors import UsageError
from harmonrank.support.options import Buckets, Count, Width, check_fields

_MOST_CELLS = 1 << 26


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """What can be chosen of the network, with a switch for each part that an ablation removes.

    The defaults are the published size: 2,426 parameters outside the tables for five
    objectives and four context features.

    Attributes:
        width: Width d of a score's embedding.
        key_width: Width d_k of queries, keys and values.
        buckets: Buckets per score; None feeds the score itself, times a learned vector.
        scale: On which buckets have equal width: the 'raw' score as printed, ⌊s·B⌋, its 'range'
            in the training rows, the range of its 'logit', or equal shares of rows ('quantile').
        interpolate: Mix the two nearest rows of a table linearly, so that close scores have close
            embeddings; otherwise each bucket has its own row.
        self_attention: Without it, every objective attends to itself alone.
        personalised: Without it, one learned query serves every context.
        cross_attention: Without it, the context is concatenated instead.
        gate: Without it, the gated path is left out.
        linear: Without it, the linear path is left out.
    """

    width: Width = 2
    key_width: Width = 32
    buckets: Buckets | None = 300
    scale: Scale = "raw"
    interpolate: bool = False
    self_attention: bool = True
    personalised: bool = True
    cross_attention: bool = True
    gate: bool = True
    linear: bool = True

    def __post_init__(self) -> None:
        if self.interpolate and self.buckets == 1:
            raise UsageError("`buckets` must be at least 2 to interpolate. Got 1.")


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(NetworkOptions):
    """The options of a network, and what the data say of its size.

    Attributes:
        objectives: How many scores are fused.
        context_slots: How many codes each context feature has, the unknown one included.
    """

    objectives: Count
    context_slots: tuple[Count, ...] = ()

    def __post_init__(self) -> None:
        check_fields("NetworkConfig", self)
        super().__post_init__()
        cells = self.objectives * (self.buckets or 1) * self.width
        if cells > _MOST_CELLS:
            raise UsageError(
                f"{cells:,} numbers in the tables of scores are too many, at most {_MOST_CELLS:,}; "
                "lower `buckets` or `width`."
            )

    @property
    def context_features(self) -> int:
        """How many numbers describe the context in this network."""
        return len(self.context_slots) if self.personalised else 0

    @property
    def knots(self) -> int:
        """How many knots the buckets of each score have."""
        return knot_count(self.buckets, interpolate=self.interpolate) if self.buckets else 0
