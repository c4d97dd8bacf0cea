"""Training loops as functions that yield events."""

from harmonrank.training.arrays import Arrays
from harmonrank.training.config import TrainingConfig
from harmonrank.training.learner import LossSlope, LossValue
from harmonrank.training.loop import (
    BatchEnded,
    EpochEnded,
    Event,
    Finished,
    Resumed,
    train,
)

__all__ = [
    "Arrays",
    "BatchEnded",
    "EpochEnded",
    "Event",
    "Finished",
    "LossSlope",
    "LossValue",
    "Resumed",
    "TrainingConfig",
    "train",
]
