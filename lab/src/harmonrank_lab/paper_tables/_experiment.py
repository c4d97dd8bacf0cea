"""Experiment: one table of the paper, from the cells it needs to what becomes of its claims."""

__all__ = ["Experiment"]

from abc import ABC, abstractmethod
from collections.abc import Sequence

from harmonrank_lab.paper_tables._cell import StudyCell
from harmonrank_lab.paper_tables._data import Data
from harmonrank_lab.paper_tables._study import Results, Study
from harmonrank_lab.paper_tables._table import PaperTable


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
