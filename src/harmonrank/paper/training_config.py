"""Training: how a network is to be trained, and the plan that this makes for some rows.

It stands beside the network's own options since a model stores both; what trains is in
`harmonrank.paper.training`.
"""

__all__ = ["Plan", "TrainingConfig"]

from dataclasses import dataclass
from math import cos, pi
from typing import Literal, NamedTuple

from harmonrank.support.options import Count, Nonnegative, Rate, Seconds, check_fields

_EPOCH_STEPS = 10  # Fewer steps than these are not worth a look at the validation rows.


class Plan(NamedTuple):
    """What a config means for some rows."""

    steps: int  # of one epoch
    passes: int  # over the rows, in one epoch
    epochs: int
    patience: int  # in epochs


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a network is trained.

    What a network learns is a matter of steps, and a small log has few of them in an epoch. So the
    length of a training and its patience are given in steps, unless told in epochs.

    Attributes:
        optimizer: 'adam', or 'sgd' as in the paper.
        learning_rate: The size of a step, at its highest.
        schedule: 'constant' keeps the rate; 'cosine' lets it rise over the first `warm_up` steps
            and fall to 0 along a cosine, so that the weights come to rest.
        warm_up: See `schedule`; at most a tenth of all steps.
        weight_decay: Decoupled: each step shrinks the weights that it acts on by this times the
            rate, and the gradient knows nothing of it. See `harmonrank.paper.training.decayed` for
            which they are.
        batch_rows: Rows per step; an epoch is cut into equal batches of about this size.
        steps: About so many are taken, in whole epochs.
        patience_steps: About so many steps without a better validation AUC-sum end the training.
        epochs: In place of `steps`: how often each row is seen.
        patience: In place of `patience_steps`: epochs without a better validation AUC-sum.
        early_stopping: Stop when the patience is over, and keep the weights of the best epoch;
            without it all steps are taken and the last weights are kept.
        checkpoint_seconds: At most this much work is lost when the process is killed.
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
        """Return the learning rate of a step, which counts from 0, of so many.

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
        """Return what this means for a number of rows.

        An epoch is one pass; where a pass has hardly any steps and epochs were not asked for, it
        is several.

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
