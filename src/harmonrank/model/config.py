"""Config: the size of the network, and what is left out of it."""

__all__ = ["NetworkConfig"]

from dataclasses import dataclass
from typing import get_args

from harmonrank.errors import UsageError
from harmonrank.model.knots import Scale, knot_count

_MOST_CELLS = 1 << 26


@dataclass(frozen=True)
class NetworkConfig:
    """The size of the network, and a switch for each part that an ablation removes.

    The defaults are the published size: 2,426 parameters outside the tables for five
    objectives and four context features.

    Attributes:
        objectives: How many scores are fused.
        context_slots: How many codes each context feature has, the unknown one included.
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

    objectives: int
    context_slots: tuple[int, ...] = ()
    width: int = 2
    key_width: int = 32
    buckets: int | None = 300
    scale: Scale = "raw"
    interpolate: bool = False
    self_attention: bool = True
    personalised: bool = True
    cross_attention: bool = True
    gate: bool = True
    linear: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "context_slots", tuple(self.context_slots))
        sizes = {"objectives": self.objectives, "width": self.width, "key_width": self.key_width}
        for name, size in {**sizes, "buckets": 1 if self.buckets is None else self.buckets}.items():
            if size < 1:
                raise UsageError(f"`{name}` must be at least 1. Got {size}.")
        cells = self.objectives * (self.buckets or 1) * self.width
        if cells > _MOST_CELLS:
            raise UsageError(
                f"{cells:,} numbers in the tables of scores are too many, at most {_MOST_CELLS:,}; "
                "lower `buckets` or `width`."
            )
        if self.interpolate and self.buckets == 1:
            raise UsageError("`buckets` must be at least 2 to interpolate. Got 1.")
        if self.scale not in get_args(Scale):
            known = ", ".join(get_args(Scale))
            raise UsageError(f"`scale` must be one of {known}. Got '{self.scale}'.")

    @property
    def context_features(self) -> int:
        """How many numbers describe the context in this network."""
        return len(self.context_slots) if self.personalised else 0

    @property
    def knots(self) -> int:
        """How many knots the buckets of each score have."""
        return knot_count(self.buckets, interpolate=self.interpolate) if self.buckets else 0
