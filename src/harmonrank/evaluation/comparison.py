"""Comparison: what many methods came to on the same rows."""

__all__ = ["Comparison"]

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harmonrank.data import Log
from harmonrank.evaluation.baseline import TODAY
from harmonrank.evaluation.leaderboard import Leaderboard
from harmonrank.evaluation.verdict import BoardVerdict
from harmonrank.fusion import Method
from harmonrank.fusion.quality.position_quality import PositionCorrection
from harmonrank.fusion.quality.upstream import MissingScores
from harmonrank.support.table import Table, Tabular

_NAMED = 6


@dataclass(frozen=True, repr=False)
class Comparison(Tabular):
    """Methods that were fitted and measured on the same rows.

    Attributes:
        board: All of them in order, the best first.
        models: What was measured, by method; without those that failed.
        notes: What a reader of the result should know, a sentence or two each.
        train: The rows that were learned from, or some of them where they are in blocks.
        test: The rows that were measured on, likewise.
        seed: Of every fit.
        missing: Missing scores of the training and test rows.
        position: How feedback of the test rows was corrected for places.
    """

    board: Leaderboard
    models: Mapping[str, Method]
    notes: tuple[str, ...]
    train: Log | None = field(repr=False)
    test: Log = field(repr=False)
    seed: int | None = None
    missing: Mapping[str, MissingScores | None] = field(default_factory=dict)
    position: PositionCorrection | None = None

    @property
    def verdict(self) -> BoardVerdict | None:
        """Who is ahead, in a sentence; None where there is nothing to compare."""
        return self.board.verdict

    @property
    def failed(self) -> bool:
        """Whether no method has a result."""
        return all(entry.error for entry in self.board.entries if entry.name != TODAY)

    @property
    def title(self) -> str:
        """What its page is called."""
        names = self.board.objectives
        fusions = sum(entry.name != TODAY for entry in self.board.entries)
        what = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} objectives"
        return f"{fusions} fusions of {what}"

    def report(self, path: str | Path, **about: Any) -> None:
        """Write one HTML page with charts.

        Args:
            path: The page.
            about: A `title` of its own, and more `caveats`.
        """
        import harmonrank  # by its public name: pages are made of results, and stand above them

        harmonrank.write_report(self, path, **about)

    def to_table(self) -> Table:
        """Return the leaderboard."""
        return self.board.to_table()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        missing = {part: lost and lost.to_dict() for part, lost in self.missing.items()}
        position = self.position and self.position.to_dict()
        return {**self.board.to_dict(), "missing": missing, "position": position}
