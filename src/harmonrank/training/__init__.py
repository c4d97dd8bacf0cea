"""Training loops as functions that yield events."""

from harmonrank.training.arrays import Arrays
from harmonrank.training.learner import LossValue
from harmonrank.training.loop import (
    BatchEnded,
    EpochEnded,
    Event,
    Finished,
    Resumed,
    TrainingConfig,
    train,
)

__all__ = [
    "Arrays",
    "BatchEnded",
    "EpochEnded",
    "Event",
    "Finished",
    "LossValue",
    "Resumed",
    "TrainingConfig",
    "train",
]
