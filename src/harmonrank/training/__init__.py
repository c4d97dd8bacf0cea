"""Training loops as functions that yield events."""

from harmonrank.model.training import TrainingConfig
from harmonrank.training.arrays import Arrays
from harmonrank.training.buffer import BufferedRows
from harmonrank.training.decay import Decay, decayed
from harmonrank.training.health import HEALTH_ROWS, health_of
from harmonrank.training.learner import LossSlope, LossValue
from harmonrank.training.loop import Event, Finished, train

__all__ = [
    "HEALTH_ROWS",
    "Arrays",
    "BufferedRows",
    "Decay",
    "Event",
    "Finished",
    "LossSlope",
    "LossValue",
    "TrainingConfig",
    "decayed",
    "health_of",
    "train",
]
