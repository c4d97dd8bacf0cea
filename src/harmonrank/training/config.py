"""Config: how a network is trained, and the plan that this makes for some rows."""

__all__ = ["Plan", "TrainingConfig"]

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import nn

from harmonrank.errors import UsageError

_EPOCH_STEPS = 10  # Fewer steps than these are not worth a look at the validation rows.


class Plan(NamedTuple):
    """What a config means for some rows."""

    steps: int  # of one epoch
    passes: int  # over the rows, in one epoch
    epochs: int
    patience: int  # in epochs


@dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained.

    What a network learns is a matter of steps, and a small log has few of them in an epoch. So the
    length of a training and its patience are given in steps, unless told in epochs.

    Attributes:
        optimizer: 'adam', or 'sgd' as in the paper.
        batch_rows: Rows per step; an epoch is cut into equal batches of about this size.
        steps: About so many are taken, in whole epochs.
        patience_steps: About so many steps without a better validation AUC-sum end the training.
        epochs: In place of `steps`: how often each row is seen.
        patience: In place of `patience_steps`: epochs without a better validation AUC-sum.
        checkpoint_seconds: At most this much work is lost when the process is killed.
    """

    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    batch_rows: int = 10_240
    steps: int = 2_000
    patience_steps: int = 400
    epochs: int | None = None
    patience: int | None = None
    checkpoint_seconds: float = 20.0

    def __post_init__(self) -> None:
        for name in ("learning_rate", "batch_rows", "steps", "patience_steps"):
            if not getattr(self, name) > 0:
                raise UsageError(f"`{name}` must be above 0. Got {getattr(self, name)}.")
        for name in ("epochs", "patience"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"`{name}` must be above 0. Got {value}.")
        if self.optimizer not in ("adam", "sgd"):
            raise UsageError(f"`optimizer` must be 'adam' or 'sgd'. Got '{self.optimizer}'.")

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

    def build(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimiser of some parameters."""
        kind = torch.optim.Adam if self.optimizer == "adam" else torch.optim.SGD
        # One call for all parameters: a small network's update is otherwise all overhead.
        return kind(parameters, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True)


def _over(a: int, b: int) -> int:
    return -(-a // b)
