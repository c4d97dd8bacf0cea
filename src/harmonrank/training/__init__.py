"""Training loops as functions that yield events."""

from harmonrank.training.arrays import Arrays
from harmonrank.training.config import TrainingConfig
from harmonrank.training.learner import LossSlope, LossValue
from harmonrank.training.loop import Event, Finished, train

__all__ = [
    "Arrays",
    "Event",
    "Finished",
    "LossSlope",
    "LossValue",
    "TrainingConfig",
    "train",
]
