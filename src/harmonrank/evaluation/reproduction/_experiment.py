"""Experiment: one table of the paper, from the cells it needs to what becomes of its claims."""

__all__ = ["Experiment", "StudyCell", "require"]

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from harmonrank.data.decoding import decode
from harmonrank.data.digests import digest
from harmonrank.errors import DataError
from harmonrank.evaluation.reproduction._data import Data
from harmonrank.evaluation.reproduction._study import Results, Study
from harmonrank.evaluation.reproduction._table import PaperTable
from harmonrank.events import OnEvent


class _Failed(TypedDict):
    """The result of a cell that the data or settings do not allow."""

    error: str


class StudyCell(ABC):
    """One experiment with its own file of results; a finished one is never run again."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name for people, unlike that of most other cells."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return all that decides the result, as JSON parts."""

    @abstractmethod
    def run(self, on_event: OnEvent, checkpoint: Path) -> dict[str, Any]:
        """Do the experiment; return numbers as JSON parts."""

    @abstractmethod
    def check(self, content: Any) -> dict[str, Any]:
        """Return what `run` returned, after a way through JSON; refuse anything else."""

    def decoded(self, content: Any) -> dict[str, Any]:
        """Return a stored result, which may be the error that the cell ended with."""
        if isinstance(content, dict) and "error" in content:
            return dict(decode(content, _Failed, self.name))
        return self.check(content)

    @property
    def key(self) -> str:
        """The name of its file: unlike that of any other cell."""
        slug = "".join(c if c.isalnum() or c in "-._" else "-" for c in self.name)
        return f"{slug[:100]}-{self.digest[:10]}"

    @property
    def digest(self) -> str:
        """A checksum of all that decides the result."""
        return digest(self.identity())

    @property
    def place(self) -> tuple[Any, ...]:
        """Cells in this order share their rows with the one before, where they can."""
        return (self.name,)


def require(condition: bool, what: str) -> None:
    """Refuse a stored result whose parts do not fit the cell."""
    if not condition:
        raise DataError(f"A stored result must have {what}.")


class Experiment(ABC):
    """What can be made again on its own.

    Attributes:
        key: The name by which the command knows it.
        worlds: What stands in for the paper's data, a table each.
    """

    key: str
    worlds: tuple[str, ...] = ("elive",)

    def refusal(self, data: Data) -> str:  # noqa: ARG002
        """Return why some data cannot serve; empty if they can."""
        return ""

    @abstractmethod
    def cells(self, study: Study) -> Sequence[StudyCell]:
        """Return what has to be run; experiments that share a cell run it once."""

    @abstractmethod
    def table(self, study: Study, results: Results) -> PaperTable:
        """Return the table and the verdicts from what the cells found."""
