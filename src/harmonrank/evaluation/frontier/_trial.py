"""Trials: weights, the figures they have, and how far above its floor each of them surely is."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from harmonrank.evaluation.frontier._floors import CURRENT, Floor
from harmonrank.evaluation.frontier._sweep import Sweep
from harmonrank.support.errors import UsageError


@dataclass(frozen=True, eq=False)
class Trial:
    """What some weights reach.

    Attributes:
        weights: (M,) from 0 up; of a search's result below 0 for unwanted objectives.
        areas: (M,) AUCs.
        total: Their sum, as they count.
        figures: (floors,) the AUC, or the events per request, that each floor is of.
        slack: (floors,) by how much the lower end of the interval is above the floor.
    """

    weights: np.ndarray
    areas: np.ndarray
    total: float
    figures: np.ndarray
    slack: np.ndarray

    @property
    def worst(self) -> float:
        """The least slack; from 0 up all floors hold."""
        return float(self.slack.min())


class Trials:
    """Tries weights and remembers the best that holds all floors.

    A floor holds where the lower end of an interval does: of the AUC or the events, or of their
    paired difference to those with the current weights or today. AUCs are within requests where
    rows have these, which are the sampling unit as well.

    Args:
        sweep: A model's heads on labelled rows, the current weights and what each AUC counts.
        floors: At least one.
        level: Of the intervals; 0 takes estimates for the truth.
    """

    def __init__(self, sweep: Sweep, floors: Sequence[Floor], level: float) -> None:
        if not 0 <= level < 1:
            raise UsageError(f"The level of an interval must be from 0 to below 1. Got {level:g}.")
        self.sweep, self.floors = sweep, tuple(floors)
        self.columns = [sweep.names.index(floor.objective) for floor in floors]
        self._z = NormalDist().inv_cdf(0.5 + 0.5 * level) if level else 0.0
        against = {floor.against for floor in floors if floor.relative}
        self._against = {
            name: self._measured(sweep.weights if name == CURRENT else None)[1] for name in against
        }
        self.best: Trial | None = None

    def figures(self, weights: np.ndarray | None) -> np.ndarray:
        """Return what each floor is of, (floors,); of what ranks today without weights."""
        return np.array([figure for figure, _ in self._measured(weights)[1]])

    def _measured(
        self, weights: np.ndarray | None
    ) -> tuple[np.ndarray, list[tuple[float, np.ndarray]]]:
        """Return all AUCs, and what each floor is of with the influence of each unit on it."""
        areas, units = self.sweep.influence(weights)
        return areas, [
            (float(areas[m]), units[:, m])
            if floor.k is None
            else self.sweep.event_influence(weights, m, floor.k)
            for floor, m in zip(self.floors, self.columns, strict=True)
        ]

    def trial(self, weights: np.ndarray) -> Trial:
        """Measure weights, which are scaled to a mean of 1."""
        weights = weights * (len(weights) / weights.sum())
        areas, measured = self._measured(weights)
        slack, signs = np.empty(len(self.floors)), self.sweep.signs
        for place, (floor, (figure, units)) in enumerate(zip(self.floors, measured, strict=True)):
            above = figure - floor.least
            if floor.relative:
                before, units_before = self._against[floor.against][place]
                above, units = above - before, units - units_before
            slack[place] = signs[self.columns[place]] * above - self._z * _error(units)
        figures = np.array([figure for figure, _ in measured])
        total = float(areas @ (self.sweep.count * signs))
        trial = Trial(weights, areas, total, figures, slack)
        if trial.worst >= 0 and (self.best is None or total > self.best.total):
            self.best = trial
        return trial


def _error(units: np.ndarray) -> float:
    """Return the standard error of a figure, given the influence of each unit that has one."""
    units = units[~np.isnan(units)]
    return float(np.sqrt(len(units) / max(len(units) - 1, 1) * (units @ units)))
