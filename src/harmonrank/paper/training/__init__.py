"""Training loops as functions that yield events."""

from harmonrank.paper.config import TrainingConfig
from harmonrank.paper.health import HEALTH_ROWS, health_of
from harmonrank.paper.training.checkpoint import Checkpoint, Progress
from harmonrank.paper.training.learner import (
    FusedLearner,
    LossFunction,
    LossValue,
    NetworkLearner,
    TorchLearner,
    decayed,
    torch_threads,
)
from harmonrank.paper.training.loop import Event, Finished, train
from harmonrank.paper.training.rows import Arrays

__all__ = [
    "HEALTH_ROWS",
    "Arrays",
    "Checkpoint",
    "Event",
    "Finished",
    "FusedLearner",
    "LossFunction",
    "LossValue",
    "NetworkLearner",
    "Progress",
    "TorchLearner",
    "TrainingConfig",
    "decayed",
    "health_of",
    "torch_threads",
    "train",
]
