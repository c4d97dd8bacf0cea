"""Config: the size of the network, and what is left out of it."""

__all__ = ["NetworkConfig"]

from dataclasses import dataclass

from harmonrank.errors import UsageError


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
    self_attention: bool = True
    personalised: bool = True
    cross_attention: bool = True
    gate: bool = True
    linear: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "context_slots", tuple(self.context_slots))
        sizes = {"objectives": self.objectives, "width": self.width, "key_width": self.key_width}
        for name, size in {**sizes, "buckets": self.buckets or 1}.items():
            if size < 1:
                raise UsageError(f"`{name}` must be at least 1. Got {size}.")

    @property
    def context_features(self) -> int:
        """How many numbers describe the context in this network."""
        return len(self.context_slots) if self.personalised else 0
