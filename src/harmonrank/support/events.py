"""Events: progress reports of long work, for progress bars, logs and pages.

They are here, and not beside the work, so that a consumer can distinguish them by type without
importing the work. Events of other packages define how the command line shows them:
`shown_by(show)`.
"""

__all__ = [
    "BatchEnded",
    "EpochEnded",
    "FitStep",
    "HealthMeasured",
    "MethodEnded",
    "MethodStarted",
    "OnEvent",
    "Part",
    "Resumed",
]

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harmonrank.evaluation.entry import Entry
    from harmonrank.paper.health import Health

OnEvent = Callable[[Any], None]


@dataclass(frozen=True)
class Resumed:
    """Training continues from a checkpoint."""

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
    """An epoch ended."""

    epoch: int
    epochs: int
    loss: float
    valid_auc_sum: float
    best_epoch: int
    gradient_share: float | None


@dataclass(frozen=True)
class HealthMeasured:
    """Training ended and the paths of the network were measured."""

    health: "Health"


@dataclass(frozen=True)
class FitStep:
    """A fit without a training loop took a step, of at most `steps`."""

    step: int
    steps: int


@dataclass(frozen=True)
class Part:
    """One of several pieces of work; `index` counts from 0."""

    name: str
    index: int
    total: int

    @property
    def place(self) -> str:
        """Its number, counted from 1, and its name."""
        return f"[{self.index + 1}/{self.total}] {self.name}"


@dataclass(frozen=True)
class MethodStarted(Part):
    """A comparison began with a method."""


@dataclass(frozen=True)
class MethodEnded(Part):
    """A method has its result; `kept` if it is from an earlier run."""

    entry: "Entry"
    kept: bool = False
