"""Leaderboard: what every method reached on the same test rows."""

__all__ = ["Entry", "Leaderboard", "leaderboard_of"]

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.methods import Quality, ceiling_of
from harmonrank.metrics import Interval, percentiles


@dataclass(frozen=True)
class Entry:
    """One method's result: its quality, or the error that kept it from one.

    Attributes:
        behind: How far its AUC-sum by labels is behind the first of the board, paired bootstrap;
            negative if ahead of it.
        adapted: Score columns that it read on a new scale, as if their upstream models were
            replaced since training.
        resampled: Its AUC-sum on each resampled test log, the same logs for every method.
    """

    name: str
    fit_seconds: float
    quality: Quality | None = None
    error: str | None = None
    behind: Interval | None = None
    adapted: tuple[str, ...] = ()
    resampled: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    @property
    def tied(self) -> bool:
        """Whether the test rows cannot tell it from the first of the board."""
        return self.behind is not None and self.behind.low <= 0

    @property
    def note(self) -> str | None:
        """What has to be known of its figures, if anything."""
        if not self.adapted:
            return None
        return (
            f"{self.name} reads {', '.join(self.adapted)} on a new scale: in the test rows they "
            "have moved and correlated scores have not, as when an upstream model is replaced."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        empty = dict.fromkeys(("auc", "auc_sum", "ci", "regret"))
        quality = empty if self.quality is None else self.quality.to_dict()
        behind = self.behind
        return {
            "name": self.name,
            **quality,
            "behind_best": None if behind is None else behind.estimate,
            "behind_best_ci": None if behind is None else [behind.low, behind.high],
            "tied_with_best": self.tied if behind is not None else None,
            "adapted": list(self.adapted),
            "fit_seconds": self.fit_seconds,
            "error": self.error,
        }


@dataclass(frozen=True)
class Leaderboard:
    """The methods in order, the best first; by exact AUC-sum in a world, else by labels."""

    objectives: tuple[str, ...]
    train_rows: int
    test_rows: int
    ceiling: float | None
    entries: tuple[Entry, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        return {
            "objectives": list(self.objectives),
            "rows": {"train": self.train_rows, "test": self.test_rows},
            "ceiling": self.ceiling,
            "methods": [entry.to_dict() for entry in self.entries],
        }


def leaderboard_of(train: Log, test: Log, entries: Sequence[Entry]) -> Leaderboard:
    """Put entries in order and measure each against the first."""
    ordered = sorted(entries, key=_place)
    return Leaderboard(
        train.schema.names,
        train.rows,
        test.rows,
        ceiling_of(test, test.schema.weight_vector),
        tuple(replace(entry, behind=_behind(ordered[0], entry)) for entry in ordered),
    )


def _place(entry: Entry) -> float:
    if entry.quality is None:
        return float("inf")
    exact = entry.quality.exact_auc_sum
    return -(entry.quality.auc_sum.estimate if exact is None else exact)


def _behind(best: Entry, entry: Entry) -> Interval | None:
    if best.quality is None or entry.quality is None:
        return None
    gap = best.quality.auc_sum.estimate - entry.quality.auc_sum.estimate
    return percentiles(gap, best.resampled - entry.resampled, entry.quality.auc_sum.level)
