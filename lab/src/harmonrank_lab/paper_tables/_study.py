"""Study: which cells an experiment needs, and how their results become the rows of a table."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank_lab.paper_tables import _table
from harmonrank_lab.paper_tables._data import Data, StudyCell
from harmonrank_lab.paper_tables._fit import FitCell
from harmonrank_lab.paper_tables._settings import Settings
from harmonrank_lab.paper_tables._table import FIGURES, PaperTable, Row, Verdict

PUBLISHED_METHOD = "harmonrank-paper"
NAMES: dict[str, str] = FIGURES["names"]
"""Methods as a reader of the paper knows them."""


@dataclass(frozen=True)
class Study:
    """One table on one kind of data."""

    data: Data
    settings: Settings
    command: str

    @property
    def seeds(self) -> range:
        """The seeds, from 0."""
        return range(self.settings.seeds)

    def fits(
        self,
        method: str,
        *,
        objectives: tuple[str, ...] | None = None,
        options: Mapping[str, Any] | None = None,
        **special: Any,
    ) -> list[FitCell]:
        """Return the cells of a method, one per seed; all objectives if none are named."""
        merged = {**self.settings.options(method), **(options or {})}
        names, ordered = objectives or self.data.objectives, tuple(sorted(merged.items()))
        return [FitCell(self.data, names, method, k, ordered, **special) for k in self.seeds]

    def paper(self, figure: float | None) -> float | None:
        """Return a figure of the paper's ELive data, if this is that or stands in for it."""
        return figure if self.data.paper == "elive" else None

    def table(
        self, key: str, rows: Sequence[Row], verdicts: Sequence[Verdict],
        notes: Sequence[str] | None = None, facts: Mapping[str, Any] | None = None, **rest: Any,
    ) -> PaperTable:  # fmt: skip
        """Return the table with its data and settings in words.

        Notes that are not given are those of its key, with the facts in them.
        """
        if notes is None:
            notes = [note.format_map(facts or {}) for note in FIGURES["notes"].get(key, ())]
        title = FIGURES["titles"][key].format_map(facts or {})
        seeds = self.settings.seeds
        settings = f"{self.settings.words()}; {seeds} seed{'s' * (seeds > 1)}"
        words = rest.pop("data", self.data.words()), rest.pop("settings", settings), self.command
        parts = tuple(rows), tuple(verdicts), tuple(notes)
        return PaperTable(key, title, *words, self.data.objectives, *parts, **rest)


class Results:
    """What the cells found, by cell."""

    def __init__(self, results: Mapping[str, dict[str, Any]]) -> None:
        self._results = results

    def __getitem__(self, cell: StudyCell) -> dict[str, Any]:
        return self._results[cell.key]

    def error(self, cells: Sequence[StudyCell]) -> str:
        """Return why some of the cells have no result; empty if all have one."""
        return next((self[cell]["error"] for cell in cells if "error" in self[cell]), "")

    def sums(self, cells: Sequence[FitCell]) -> np.ndarray | None:
        """Return AUC-sums (seeds, 1 + replicates); None if a cell failed."""
        if self.error(cells):
            return None
        rows = []
        for cell in cells:
            weights = cell.weights or (1.0,) * len(cell.objectives)
            total = float(np.dot(weights, self[cell]["auc"]))
            rows.append([total, *self[cell].get("resampled", [])])
        # A resampled log in which an objective lost a class has no sum: null in the file, then nan.
        return np.array(rows, dtype=float)

    def regrets(self, cells: Sequence[FitCell]) -> np.ndarray | None:
        """Return how far below the ceiling the AUC-sums are, (seeds, 1); None if not known."""
        totals, ceilings = self.sums(cells), self._ceilings(cells)
        return None if totals is None or ceilings is None else ceilings - totals[:, :1]

    def row(self, group: str, name: str, paper: float | None, cells: Sequence[FitCell]) -> Row:
        """Return the row of one method."""
        ours, regret = map(_table.known_estimate, (self.sums(cells), self.regrets(cells)))
        return Row(group, name, "AUC-sum", paper, ours, regret, self.error(cells))

    def verdict(
        self, claim: str, better: Sequence[FitCell], worse: Sequence[FitCell], **about: Any
    ) -> Verdict:
        """Judge the claim that some fits have a larger AUC-sum than others."""
        return _table.verdict(claim, minus(self.sums(better), self.sums(worse)), **about)

    def areas(self, cells: Sequence[FitCell]) -> list[list[float | None]]:
        """Return the AUC of each objective, mean over seeds with its interval."""
        areas = np.array([self[cell]["auc"] for cell in cells])
        estimates = [_table.estimate_of(values[:, None]) for values in areas.T]
        return [[each.mean, each.low, each.high] for each in estimates]

    def ceiling(self, group: str, cells: Sequence[FitCell]) -> list[Row]:
        """Return the row of the best possible, where it is known."""
        ceilings = self._ceilings(cells)
        if ceilings is None:
            return []
        return [Row(group, "best possible", "AUC-sum", None, _table.estimate_of(ceilings))]

    def _ceilings(self, cells: Sequence[FitCell]) -> np.ndarray | None:
        ceilings = [self[cell].get("ceiling") for cell in cells]
        return None if None in ceilings else np.array(ceilings)[:, None]


def minus(a: Any, b: Any) -> Any:
    """Return the difference of two numbers, or of two arrays, where both are there."""
    return None if a is None or b is None else a - b


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
