"""The training loop: a function that yields what happens."""

__all__ = [
    "BatchEnded",
    "EpochEnded",
    "Event",
    "Finished",
    "Resumed",
    "TrainingConfig",
    "train",
]

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import nn

from harmonrank.errors import DivergenceError, UsageError
from harmonrank.training.arrays import Arrays
from harmonrank.training.checkpoint import Checkpoint, Progress
from harmonrank.training.learner import Learner, LossFunction, learner_for

N = TypeVar("N", bound=nn.Module)


@dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained.

    Attributes:
        optimizer: 'adam', or 'sgd' as in the paper.
        batch_rows: Rows per step; an epoch is cut into equal batches of about this size.
        patience: Epochs without a better validation AUC-sum after which training stops.
        checkpoint_seconds: At most this much work is lost when the process is killed.
    """

    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    batch_rows: int = 10_240
    epochs: int = 20
    patience: int = 4
    checkpoint_seconds: float = 20.0

    def __post_init__(self) -> None:
        for name in ("learning_rate", "batch_rows", "epochs", "patience"):
            if not getattr(self, name) > 0:
                raise UsageError(f"`{name}` must be above 0. Got {getattr(self, name)}.")
        if self.optimizer not in ("adam", "sgd"):
            raise UsageError(f"`optimizer` must be 'adam' or 'sgd'. Got '{self.optimizer}'.")

    def build(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimiser of some parameters."""
        kind = torch.optim.Adam if self.optimizer == "adam" else torch.optim.SGD
        return kind(parameters, lr=self.learning_rate, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class Resumed:
    """A checkpoint was found and training goes on from it."""

    epoch: int
    step: int


@dataclass(frozen=True)
class BatchEnded:
    """One step was taken; epoch and step count from 0."""

    epoch: int
    step: int
    steps: int
    epochs: int


@dataclass(frozen=True)
class EpochEnded:
    """All rows were seen once more."""

    epoch: int
    epochs: int
    loss: float
    valid_auc_sum: float
    best_epoch: int
    gradient_share: float | None


@dataclass(frozen=True)
class Finished:
    """Training is over and the network holds the weights of its best epoch."""

    best_epoch: int
    valid_auc_sum: float
    reason: Literal["epochs", "patience"]


Event = Resumed | BatchEnded | EpochEnded | Finished


def train(
    network: N,
    rows: Arrays,
    loss: LossFunction,
    validate: Callable[[N], float],
    config: TrainingConfig,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    fingerprint: str = "",
) -> Iterator[Event]:
    """Train a network, yield what happens, and leave it with the weights of its best epoch.

    Row order depends on the seed and the epoch alone and a checkpoint holds all other state,
    so a run that was killed goes on to the same weights, bit for bit, as one that was not.

    Args:
        network: Called with scores and context.
        rows: The training rows, on the network's device.
        loss: Of the network's output and the batch.
        validate: Validation AUC-sum of the network, higher is better.
        config: Optimiser, batches, epochs.
        seed: Decides the order of rows.
        checkpoint: Where state is kept; if the file exists, training goes on from it.
        fingerprint: Of data and options; a checkpoint of another one is refused.
    """
    learner = learner_for(network, rows, config.build, rows_seen=len(rows) * config.epochs)
    state = Checkpoint(network, learner.optimizer)
    fingerprint = f"{fingerprint}/{learner.kind}"
    progress = Progress()
    if checkpoint is not None and checkpoint.exists():
        progress = state.load(checkpoint, fingerprint)
        learner.take_over()
        yield Resumed(progress.epoch, progress.step)

    def save() -> float:
        if checkpoint is not None:
            learner.publish()
            state.save(checkpoint, progress, fingerprint)
        return monotonic()

    saved_at = monotonic()
    while progress.epoch < config.epochs and progress.since_best < config.patience:
        for event in _epoch(learner, len(rows), loss, config, seed, progress):
            if monotonic() - saved_at > config.checkpoint_seconds:
                saved_at = save()
            yield event
        learner.publish()
        valid = validate(network)
        if valid > progress.best_valid:
            state.keep_best()
            progress.best_valid, progress.best_epoch = valid, progress.epoch
        ended = EpochEnded(
            progress.epoch,
            config.epochs,
            progress.mean_loss,
            valid,
            progress.best_epoch,
            progress.mean_share,
        )
        progress.next_epoch()
        saved_at = save()
        yield ended
    state.restore_best()
    reason: Literal["epochs", "patience"] = (
        "epochs" if progress.since_best < config.patience else "patience"
    )
    yield Finished(progress.best_epoch, progress.best_valid, reason)


def _epoch(
    learner: Learner,
    rows: int,
    loss: LossFunction,
    config: TrainingConfig,
    seed: int,
    progress: Progress,
) -> Iterator[BatchEnded]:
    """Take the steps of one epoch that are still to be taken."""
    order = np.random.default_rng([seed, progress.epoch]).permutation(rows)
    steps = -(-rows // config.batch_rows)
    batches = np.array_split(order, steps)
    for step in range(progress.step, steps):
        # The order within a batch is nothing to the loss, and memory is read faster in order.
        value = learner.step(np.sort(batches[step]), loss)
        number = float(value.loss.detach())
        if not np.isfinite(number):
            raise DivergenceError(
                f"The training loss became {number} in epoch {progress.epoch + 1}; "
                f"lower `learning_rate`, now {config.learning_rate:g}."
            )
        progress.add(number, value.gradient_share)
        yield BatchEnded(progress.epoch, step, steps, config.epochs)
