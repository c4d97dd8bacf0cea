"""Events of the laboratory's long work, which say themselves how the command line shows them."""

__all__ = [
    "CellEnded",
    "CellStarted",
    "ImportStep",
    "MemberStarted",
    "ScoredRows",
    "StepEnded",
    "StepStarted",
]

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harmonrank.support import Part

if TYPE_CHECKING:
    from harmonrank.cli.parts import Show


@dataclass(frozen=True)
class ImportStep:
    """So much of a stage is done, in chunks; `kept` if an earlier run did it."""

    stage: str
    done: int
    total: int
    rows: int
    kept: bool = False

    def shown_by(self, show: "Show") -> None:
        """Tell a person."""
        show.advance(f"{self.stage} ", self.done, self.total, f"{self.rows:,} rows")


@dataclass(frozen=True)
class ScoredRows:
    """So many rows of a part are scored."""

    part: str
    done: int
    total: int

    def shown_by(self, show: "Show") -> None:
        """Tell a person."""
        show.advance(f"score {self.part} ", self.done, self.total, f"{self.done:,} rows")


@dataclass(frozen=True)
class MemberStarted(Part):
    """The training of a predictor's member begins; `kept` if an earlier run trained it."""

    kept: bool = False

    def shown_by(self, show: "Show") -> None:
        """Tell a person."""
        show.prefix = f"{self.place} "
        if self.kept:
            show.line(f"{self.place} kept from an earlier run")


@dataclass(frozen=True)
class StepStarted(Part):
    """A pipeline's step begins its work."""

    def shown_by(self, show: "Show") -> None:
        """Tell a person."""
        show.line(f"{self.place} …")


@dataclass(frozen=True)
class StepEnded(Part):
    """A step has its outcome; `kept` if an earlier run had it already, from the same inputs.

    Attributes:
        seconds: What the work took, whenever it was done.
    """

    seconds: float
    kept: bool

    def shown_by(self, show: "Show") -> None:
        """Tell a person."""
        show.prefix = ""
        done = "kept: nothing it depends on has changed" if self.kept else "done"
        show.line(f"{self.place} {done} ({self.seconds:.1f} s)")


@dataclass(frozen=True)
class CellStarted(Part):
    """An experiment of a reproduction begins."""


@dataclass(frozen=True)
class CellEnded(Part):
    """An experiment has its result; `kept` if an earlier run had it already."""

    seconds: float
    result: dict[str, Any]
    kept: bool = False
