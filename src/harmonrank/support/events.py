"""Events: what long work reports as it goes; progress bars, logs and pages are its consumers.

They are here, and not beside the work, so that a consumer can tell them apart by type without
loading what it may never need.
"""

__all__ = [
    "BatchEnded",
    "CellEnded",
    "CellStarted",
    "EpochEnded",
    "FitStep",
    "HealthMeasured",
    "ImportStep",
    "MemberStarted",
    "MethodEnded",
    "MethodStarted",
    "OnEvent",
    "Part",
    "Resumed",
    "ScoredRows",
    "StepEnded",
    "StepStarted",
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
class HealthMeasured:
    """Training is over and the paths of the network were measured."""

    health: "Health"


@dataclass(frozen=True)
class FitStep:
    """A fit that is no training loop took a step; it takes at most `steps`."""

    step: int
    steps: int


@dataclass(frozen=True)
class ImportStep:
    """So much of a stage is done, in chunks; `kept` if an earlier run did it."""

    stage: str
    done: int
    total: int
    rows: int
    kept: bool = False


@dataclass(frozen=True)
class ScoredRows:
    """So many rows of a part are scored."""

    part: str
    done: int
    total: int


@dataclass(frozen=True)
class Part:
    """One of several pieces of work; `index` counts from 0."""

    name: str
    index: int
    total: int

    @property
    def place(self) -> str:
        """Its number and name, as people count."""
        return f"[{self.index + 1}/{self.total}] {self.name}"


@dataclass(frozen=True)
class MemberStarted(Part):
    """The training of a predictor's member begins; `kept` if an earlier run trained it."""

    kept: bool = False


@dataclass(frozen=True)
class MethodStarted(Part):
    """A comparison turns to a method."""


@dataclass(frozen=True)
class MethodEnded(Part):
    """A method has its result; `kept` if an earlier run had it already."""

    entry: "Entry"
    kept: bool = False


@dataclass(frozen=True)
class StepStarted(Part):
    """A pipeline's step begins its work."""


@dataclass(frozen=True)
class StepEnded(Part):
    """A step has its outcome; `kept` if an earlier run had it already, from the same inputs.

    Attributes:
        seconds: What the work took, whenever it was done.
    """

    seconds: float
    kept: bool


@dataclass(frozen=True)
class CellStarted(Part):
    """An experiment of a reproduction begins."""


@dataclass(frozen=True)
class CellEnded(Part):
    """An experiment has its result; `kept` if an earlier run had it already."""

    seconds: float
    result: dict[str, Any]
    kept: bool = False
