"""Training loops as functions that yield events."""

from harmonrank.training.loop import (
    Arrays,
    BatchEnded,
    EpochEnded,
    Event,
    Finished,
    LossValue,
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
