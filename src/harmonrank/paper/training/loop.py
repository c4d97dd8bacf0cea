"""The training loop: a function that yields what happens."""

__all__ = ["Event", "Finished", "train"]

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from harmonrank.paper.config import Plan, TrainingConfig
from harmonrank.paper.training.checkpoint import Checkpoint, Progress
from harmonrank.paper.training.learner import LossFunction, NetworkLearner, learner_for
from harmonrank.paper.training.rows import Arrays, random_batches, request_batches
from harmonrank.support.errors import DivergenceError
from harmonrank.support.events import BatchEnded, EpochEnded, Resumed

N = TypeVar("N", bound=nn.Module)


@dataclass(frozen=True)
class Finished:
    """Training is over and the network holds the weights of its best epoch.

    Attributes:
        history: Mean loss, validation AUC-sum and share of items with a gradient of each epoch,
            including those before a resumption.
    """

    best_epoch: int
    valid_auc_sum: float
    reason: Literal["epochs", "patience"]
    history: tuple[tuple[float, float, float | None], ...] = ()


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
    rows_seen: int | None = None,
    requests: NDArray[np.int64] | None = None,
) -> Iterator[Event]:
    """Train a network, yield what happens, and leave it with the weights of its best epoch.

    Without early stopping, the last epoch counts as the best.

    Row order depends on the seed and the epoch alone, and a checkpoint holds all other state. So a
    run that was killed and continued ends with the same weights, bit for bit.

    Args:
        network: Called with scores and context.
        rows: The training rows, on the network's device.
        loss: Of the network's output and the batch.
        validate: Validation AUC-sum of the network, higher is better.
        config: Optimiser, batches, length.
        seed: Decides the order of rows.
        checkpoint: File for the state; if it exists, training continues from it.
        fingerprint: Digest of data and options; a checkpoint with another one is refused.
        rows_seen: Decides whether kernels are worth compiling; by default computed from the plan.
        requests: Where each request begins, and the end, if batches must hold whole requests.
    """
    plan = config.plan(len(rows))
    seen = len(rows) * plan.passes * plan.epochs if rows_seen is None else rows_seen
    learner = learner_for(network, rows, config, seen)
    state = Checkpoint(network, learner.optimizer)
    fingerprint = f"{fingerprint}/{learner.kind}"
    progress = Progress()
    if checkpoint is not None and checkpoint.exists():
        progress = state.load(checkpoint, fingerprint)
        yield Resumed(progress.epoch, progress.step)

    def save() -> float:
        if checkpoint is not None:
            state.save(checkpoint, progress, fingerprint)
        return monotonic()

    saved_at = monotonic()
    patience = plan.patience if config.early_stopping else plan.epochs
    while progress.epoch < plan.epochs and progress.since_best < patience:
        batches = _batches(len(rows), requests, plan, seed, progress.epoch)
        for event in _epoch(learner, batches, loss, config, plan, progress):
            if monotonic() - saved_at > config.checkpoint_seconds:
                saved_at = save()
            yield event
        valid = validate(network)
        if valid > progress.best_valid or not config.early_stopping:
            state.keep_best()
            progress.best_valid, progress.best_epoch = valid, progress.epoch
        ended = EpochEnded(
            progress.epoch,
            plan.epochs,
            progress.mean_loss,
            valid,
            progress.best_epoch,
            progress.mean_share,
        )
        progress.history.append((ended.loss, valid, ended.gradient_share))
        progress.next_epoch()
        saved_at = save()
        yield ended
    state.restore_best()
    reason: Literal["epochs", "patience"] = (
        "epochs" if progress.since_best < patience else "patience"
    )
    history = tuple((loss, valid, share) for loss, valid, share in progress.history)
    yield Finished(progress.best_epoch, progress.best_valid, reason, history)


def _batches(
    rows: int, requests: NDArray[np.int64] | None, plan: Plan, seed: int, epoch: int
) -> list[NDArray[np.int64]]:
    """Return the rows of each step of an epoch."""
    batches: list[NDArray[np.int64]] = []
    for again in range(plan.passes):
        order, each = [seed, epoch, again], plan.steps // plan.passes
        if requests is None:
            batches += random_batches(rows, each, order)
        else:
            batches += request_batches(requests, each, order)
    return batches


def _epoch(
    learner: NetworkLearner,
    batches: list[NDArray[np.int64]],
    loss: LossFunction,
    config: TrainingConfig,
    plan: Plan,
    progress: Progress,
) -> Iterator[BatchEnded]:
    """Take the remaining steps of an epoch."""
    for step, index in enumerate(batches[progress.step :], progress.step):
        for group in learner.optimizer.param_groups:
            group["lr"] = config.rate(progress.epoch * plan.steps + step, plan.steps * plan.epochs)
        value, share = learner.step(index, loss)
        if not np.isfinite(value):
            raise DivergenceError(
                f"The training loss became {value} in epoch {progress.epoch + 1}; "
                f"lower `learning_rate`, now {config.learning_rate:g}."
            )
        progress.add(value, share)
        yield BatchEnded(progress.epoch, step, plan.steps, plan.epochs)
