"""Trials: weights, the AUCs they have, and how far above its floor each of them surely is."""

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
        slack: (floors,) by how much the lower end of the interval is above the floor.
    """

    weights: np.ndarray
    areas: np.ndarray
    total: float
    slack: np.ndarray

    @property
    def worst(self) -> float:
        """The least slack; from 0 up all floors hold."""
        return float(self.slack.min())


class Trials:
    """Tries weights and remembers the best that holds all floors.

    A floor holds where the lower end of an interval does: of the AUC, or of its paired difference
    to the AUC with the current weights or today. AUCs are within requests where rows have these,
    which are the sampling unit as well.

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
        against = {CURRENT} | {floor.against for floor in floors if floor.relative}
        self._against = {
            name: sweep.influence(sweep.weights if name == CURRENT else None) for name in against
        }
        self.best: Trial | None = None

    def trial(self, weights: np.ndarray) -> Trial:
        """Measure weights, which are scaled to a mean of 1."""
        weights = weights * (len(weights) / weights.sum())
        areas, units = self.sweep.influence(weights)
        slack, signs = np.empty(len(self.floors)), self.sweep.signs
        for place, (floor, m) in enumerate(zip(self.floors, self.columns, strict=True)):
            unit, area = units[:, m], areas[m] - floor.least
            if floor.relative:
                before, units_before = self._against[floor.against]
                unit, area = unit - units_before[:, m], area - before[m]
            slack[place] = signs[m] * area - self._z * _error(unit)
        found = Trial(weights, areas, float(areas @ (self.sweep.count * signs)), slack)
        if found.worst >= 0 and (self.best is None or found.total > self.best.total):
            self.best = found
        return found


def _error(units: np.ndarray) -> float:
    """Return the standard error of an AUC, given the influence of each unit that has one on it."""
    units = units[~np.isnan(units)]
    return float(np.sqrt(len(units) / max(len(units) - 1, 1) * (units @ units)))
