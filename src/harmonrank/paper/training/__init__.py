"""Training loops as functions that yield events."""

from harmonrank.paper.training.arrays import Arrays
from harmonrank.paper.training.checkpoint import Checkpoint, Progress
from harmonrank.paper.training.decay import Decay, decayed
from harmonrank.paper.training.health import HEALTH_ROWS, health_of
from harmonrank.paper.training.learner import (
    FusedLearner,
    Learner,
    LossFunction,
    LossValue,
    TorchLearner,
)
from harmonrank.paper.training.loop import Event, Finished, train
from harmonrank.paper.training_config import TrainingConfig

__all__ = [
    "HEALTH_ROWS",
    "Arrays",
    "Checkpoint",
    "Decay",
    "Event",
    "Finished",
    "FusedLearner",
    "Learner",
    "LossFunction",
    "LossValue",
    "Progress",
    "TorchLearner",
    "TrainingConfig",
    "decayed",
    "health_of",
    "train",
]
