"""Config: the size of each network, what is stored of it, and how one is trained."""

__all__ = [
    "NetworkConfig",
    "NetworkOptions",
    "Plan",
    "TrainingConfig",
]

from dataclasses import dataclass
from math import cos, pi
from typing import Literal, NamedTuple

from harmonrank.paper.buckets import Scale, knot_count
from harmonrank.support.errors import UsageError
from harmonrank.support.options import (
    Buckets,
    Count,
    Nonnegative,
    Rate,
    Seconds,
    Width,
    check_fields,
)
from harmonrank.support.storage.arrays import Array

_MOST_CELLS = 1 << 26


_BOUNDS = {"prior.centre": (-1e3, 1e3), "prior.spread": (1e-6, 1e3), "share": (0.0, 1.0)}
_EPOCH_STEPS = 10  # With fewer steps an epoch is not worth a validation.


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """Options of the network, with a switch for each part that an ablation removes.

    The defaults are the published size: 2,426 parameters outside the tables for five
    objectives and four context features.

    Attributes:
        width: Width d of a score's embedding.
        key_width: Width d_k of queries, keys and values.
        buckets: Buckets per score; None multiplies the score itself by a learned vector.
        scale: On which buckets have equal width: the 'raw' score as printed, ⌊s·B⌋, its 'range'
            in the training rows, the range of its 'logit', or equal shares of rows ('quantile').
        interpolate: Interpolate between the two nearest rows of a table, so that close scores
            have close embeddings; otherwise each bucket has its own row.
        self_attention: Without it, every objective attends only to itself.
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
    """The options of a network, and the sizes that the data decide.

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

    @property
    def arrays(self) -> dict[str, Array]:
        """The parameters of `Network` and the knots of its buckets, by name.

        >>> NetworkConfig(objectives=5).arrays["scores.table"].shape
        (1500, 2)
        """
        M, d, k, C = self.objectives, self.width, self.key_width, self.context_features
        slots = self.context_slots if self.personalised else ()
        shapes: dict[str, tuple[int, ...]] = {
            "scores.table": (M * (self.buckets or 1), d),
            "context.table": (sum(slots), 1),
            "relation_aware.value.weight": (k, d),
        }
        if self.self_attention:
            shapes |= {f"relation_aware.{name}.weight": (k, d) for name in ("query", "key")}
        if self.cross_attention:
            shapes["relation_aware.context_query.weight"] = (k, max(C, 1))
            shapes |= {f"relation_aware.context_{n}.weight": (k, k) for n in ("key", "value")}
        shapes |= _linear("relation_aware.output", k if self.cross_attention else M * k + C)
        if self.gate:
            shapes |= _linear("gated.gate", d) | _linear("gated.output", M * d)
        if self.linear:
            shapes |= _linear("linear", M * d)
        declared = {name: Array(shape, "float32") for name, shape in shapes.items()}
        knots = Array((M, self.knots), "float32", low=0.0, high=2.0, strictly=True)
        return {**declared, "scores.knots": knots}


def _linear(name: str, inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (1, inputs), f"{name}.bias": (1,)}


class Plan(NamedTuple):
    """The length of a training on a number of rows."""

    steps: int  # of one epoch
    passes: int  # over the rows, in one epoch
    epochs: int
    patience: int  # in epochs


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a network is trained.

    What a network learns depends on the number of steps, and a small log has few of them in an
    epoch. So length and patience are given in steps, unless they are given in epochs.

    Attributes:
        optimizer: 'adam', or 'sgd' as in the paper.
        learning_rate: The size of a step, at its highest.
        schedule: 'constant' keeps the rate; with 'cosine' it rises over the first `warm_up` steps
            and falls to 0 along a cosine, so that the weights settle.
        warm_up: See `schedule`; at most a tenth of all steps.
        weight_decay: Decoupled: each step shrinks weights by this times the rate, apart from the
            gradient. `harmonrank.paper.training.decayed` says which weights.
        batch_rows: Rows per step; an epoch is cut into equal batches of about this size.
        steps: About how many steps are taken, in whole epochs.
        patience_steps: About how many steps without a better validation AUC-sum end the training.
        epochs: How often each row is seen, in place of `steps`.
        patience: Epochs without a better validation AUC-sum, in place of `patience_steps`.
        early_stopping: Stop when the patience is over and keep the weights of the best epoch;
            otherwise take all steps and keep the last weights.
        checkpoint_seconds: A killed process loses at most this many seconds of work.
    """

    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: Rate = 0.01
    schedule: Literal["constant", "cosine"] = "constant"
    warm_up: Count = 50
    weight_decay: Nonnegative = 0.0
    batch_rows: Count = 10_240
    steps: Count = 2_000
    patience_steps: Count = 400
    epochs: Count | None = None
    patience: Count | None = None
    early_stopping: bool = True
    checkpoint_seconds: Seconds = 20.0

    def __post_init__(self) -> None:
        check_fields(type(self).__name__, self)

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0, of `steps` in all.

        >>> config = TrainingConfig(learning_rate=1.0, schedule="cosine", warm_up=10)
        >>> [round(config.rate(step, 1_000), 3) for step in (0, 9, 500, 999)]
        [0.1, 1.0, 0.5, 0.0]
        """
        if self.schedule == "constant":
            return self.learning_rate
        warm_up = max(min(self.warm_up, steps // 10), 1)
        fallen = 0.5 * (1 + cos(pi * min(step / steps, 1.0)))
        return self.learning_rate * min((step + 1) / warm_up, 1.0) * fallen

    def plan(self, rows: int) -> Plan:
        """Return the length of a training on a number of rows.

        An epoch is one pass over the rows, or several if a pass has very few steps and neither
        `epochs` nor `patience` was given.

        >>> TrainingConfig(steps=2_000, patience_steps=400).plan(1_000_000)
        Plan(steps=98, passes=1, epochs=21, patience=5)
        >>> TrainingConfig(steps=2_000, patience_steps=400).plan(25_000)
        Plan(steps=12, passes=4, epochs=167, patience=34)
        """
        pass_steps = _over(rows, self.batch_rows)
        passes = 1 if self.epochs or self.patience else _over(_EPOCH_STEPS, pass_steps)
        steps = passes * pass_steps
        epochs = self.epochs or _over(self.steps, steps)
        return Plan(steps, passes, epochs, self.patience or _over(self.patience_steps, steps))


def _over(a: int, b: int) -> int:
    return -(-a // b)
