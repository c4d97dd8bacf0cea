"""Leaderboard: what every method reached on the same test rows."""

__all__ = ["Entry", "Leaderboard", "leaderboard_of"]

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.methods import Quality, ceiling_of
from harmonrank.methods.drift import Drift
from harmonrank.metrics import Interval, percentiles
from harmonrank.table import Cell, Column, Style, Table, Tabular


@dataclass(frozen=True)
class Entry:
    """One method's result: its quality, or the error that kept it from one.

    Attributes:
        fit_seconds: None if it was fitted before.
        behind: How far its AUC-sum by labels is behind the first of the board, paired bootstrap;
            negative if ahead of it.
        as_fitted: Its quality before it was recalibrated on the test rows, where it was.
        resampled: Its AUC-sum on each resampled test log, the same logs for every method.
    """

    name: str
    fit_seconds: float | None
    quality: Quality | None = None
    error: str | None = None
    behind: Interval | None = None
    as_fitted: Quality | None = None
    resampled: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    @property
    def tied(self) -> bool:
        """Whether the test rows cannot tell it from the first of the board."""
        return self.behind is not None and self.behind.low <= 0

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
            "as_fitted": self.as_fitted and self.as_fitted.to_dict(),
            "fit_seconds": self.fit_seconds,
            "error": self.error,
        }


@dataclass(frozen=True, repr=False)
class Leaderboard(Tabular):
    """The methods in order, the best first; by exact AUC-sum in a world, else by labels.

    Attributes:
        train_rows: None where the methods were fitted before.
        drift: Of the test rows' scores since training.
        recalibrated: Whether all methods were recalibrated on the test rows.
    """

    objectives: tuple[str, ...]
    train_rows: int | None
    test_rows: int
    ceiling: float | None
    entries: tuple[Entry, ...]
    drift: Drift | None = None
    recalibrated: bool = False

    @property
    def qualities(self) -> dict[str, Quality]:
        """The qualities by method, in order, without those that failed."""
        return {e.name: e.quality for e in self.entries if e.quality is not None}

    def to_table(self) -> Table:
        """Return a row per method, below the ceiling where it is known."""
        known, timed = self.ceiling is not None, self.train_rows is not None
        columns = (
            Column("method"),
            Column("AUC-sum", ".4f"),
            *[Column("as fitted", ".4f")] * self.recalibrated,
            Column("95 % interval", align="right", spare=True),
            Column("regret" if known else "behind", ".4f"),
            # What is_click and is_comment have in common is the first to go.
            *(Column(o, ".3f", short=o.removeprefix("is_"), least=5) for o in self.objectives),
            *[Column("fit s", ".1f")] * timed,
        )
        blanks = ("",) * (len(self.objectives) + timed)
        before = ("",) * (1 + self.recalibrated)
        rows: list[tuple[Any, ...]] = [("ceiling", self.ceiling, *before, 0, *blanks)] * known
        rows += [self._row(entry, blanks) for entry in self.entries]
        emphasis: dict[int, Style] = {0: "dim"} if known else {}
        emphasis |= {known + i: "red" for i, e in enumerate(self.entries) if e.error}
        return Table(
            columns,
            tuple(rows),
            emphasis=emphasis,
            alarms=tuple(f"{entry.name}: {entry.error}" for entry in self.entries if entry.error),
            notes=tuple(self._notes()),
        )

    def _row(self, entry: Entry, blanks: tuple[str, ...]) -> tuple[Any, ...]:
        quality = entry.quality
        if quality is None:
            return (entry.name, Cell(None, "failed"), *[""] * (2 + self.recalibrated), *blanks)
        behind = entry.behind and entry.behind.estimate
        tied = entry.tied and entry is not self.entries[0]
        return (
            entry.name,
            Cell(quality.total, mark="=" * tied),
            *[entry.as_fitted and entry.as_fitted.total] * self.recalibrated,
            str(quality.auc_sum),
            behind if quality.regret is None else quality.regret,
            *(quality.areas[name] for name in self.objectives),
            *[entry.fit_seconds] * (self.train_rows is not None),
        )

    def _notes(self) -> Iterator[str]:
        train = "" if self.train_rows is None else f"{self.train_rows:,} training rows, "
        yield f"{train}{self.test_rows:,} test rows."
        if self.ceiling is None:
            yield "Behind: AUC-sum of the first − AUC-sum."
        else:
            yield "AUCs by true probabilities, intervals by labels. Regret: ceiling − AUC-sum."
        if any(entry.tied for entry in self.entries[1:]):
            yield "=: the test labels cannot tell it from the first (paired bootstrap, 95 %)."
        if self.recalibrated:
            yield "Recalibrated on the test rows, without labels. As fitted: AUC-sum before that."

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        return {
            "objectives": list(self.objectives),
            "rows": {"train": self.train_rows, "test": self.test_rows},
            "ceiling": self.ceiling,
            "methods": [entry.to_dict() for entry in self.entries],
            "recalibrated": self.recalibrated,
            "drift": self.drift and self.drift.to_dict(),
        }


def leaderboard_of(
    train: Log, test: Log, entries: Sequence[Entry], drift: Drift, *, recalibrated: bool = False
) -> Leaderboard:
    """Put entries in order and measure each against the first."""
    ordered = sorted(entries, key=_place)
    return Leaderboard(
        train.schema.names,
        train.rows,
        test.rows,
        ceiling_of(test, test.schema.weight_vector),
        tuple(replace(entry, behind=_behind(ordered[0], entry)) for entry in ordered),
        drift,
        recalibrated,
    )


def _place(entry: Entry) -> float:
    return float("inf") if entry.quality is None else -entry.quality.total


def _behind(best: Entry, entry: Entry) -> Interval | None:
    if best.quality is None or entry.quality is None:
        return None
    gap = best.quality.auc_sum.estimate - entry.quality.auc_sum.estimate
    return percentiles(gap, best.resampled - entry.resampled, entry.quality.auc_sum.level)
