"""Guarded: the best weighted AUC-sum subject to floors, found by moving weights alone.

The best score for Σ c_m AUC_m subject to AUC_j ≥ f_j is, by the Lagrangian, the best score for
Σ (c_m + λ_m) AUC_m with λ_m = 0 where there is no floor or it does not bind: so only the weights of
objectives with a floor rise. λ_m is the price of a floor, what the sum would gain by lowering it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harmonrank.evaluation.frontier._floors import Floor
from harmonrank.evaluation.frontier._nearest import conflict_of, eased, nearest_to
from harmonrank.evaluation.frontier._prices import price_floors, prices_of
from harmonrank.evaluation.frontier._sweep import Sweep
from harmonrank.evaluation.frontier._trial import Trial, Trials
from harmonrank.support.errors import UsageError


@dataclass(frozen=True, eq=False)
class Guarded:
    """What the search found.

    Attributes:
        names: The objectives.
        floors: As they were asked for.
        feasible: Whether weights were found that hold all of them.
        point: The best weights that do; if there are none, those with the least worst shortfall.
        current: The current weights.
        prices: By objective, what the AUC-sum would gain if its floor were lowered by a unit; of
            those whose floors are all on their AUC.
        conflict: Floors that cannot hold together though any fewer of them can; empty if feasible.
        margin: Whether a floor must hold at the lower end of an interval.
        where: Which AUC floors and sums are by: "within requests" or "over all rows".
        today: (floors,) what each floor is of, as what ranks today has it, if it was named.
    """

    names: tuple[str, ...]
    floors: tuple[Floor, ...]
    feasible: bool
    point: Trial
    current: Trial
    prices: dict[str, float]
    conflict: tuple[Floor, ...] = ()
    margin: bool = True
    where: str = "over all rows"
    today: np.ndarray | None = None

    @property
    def short(self) -> float:
        """By how much all floors would have to be lowered."""
        return max(0.0, -self.point.worst)

    def sentence(self) -> str:
        """Return the verdict."""
        kept = ", ".join(map(str, self.floors))
        if not self.feasible:
            those = " and ".join(map(str, self.conflict))
            conflict = "cannot hold together" if len(self.conflict) > 1 else "cannot hold at all"
            margin = " with their margin" if self.margin else ""
            return (
                f"{those} {conflict}{margin}; at the nearest point all floors hold if each is "
                f"lowered by {self.short:.4f}."
            )
        change = self.point.total - self.current.total
        total = f"AUC-sum {self.where} {self.point.total:.4f}"
        return f"{kept} can be kept: {total}, {change:+.4f} against now."

    def to_dict(self) -> dict[str, Any]:
        """Return JSON parts."""

        def named(row: np.ndarray) -> dict[str, float]:
            return dict(zip(self.names, row.tolist(), strict=True))

        each = zip(self.floors, self.point.figures.tolist(), self.point.slack.tolist(), strict=True)
        return {
            "feasible": self.feasible,
            "sentence": self.sentence(),
            "floors": [
                {**floor.to_dict(), "figure": figure, "slack": slack}
                for floor, figure, slack in each
            ],
            "conflict": [str(floor) for floor in self.conflict],
            "short": self.short,
            "prices": self.prices,
            "weights": named(self.point.weights),
            "auc": named(self.point.areas),
            "auc_sum": self.point.total,
            "current": {"auc": named(self.current.areas), "auc_sum": self.current.total},
            "criterion": self.where.removeprefix("over "),
        }


def guarded_by(sweep: Sweep, floors: Sequence[Floor], *, level: float = 0.95) -> Guarded:
    """Search the weights of the best AUC-sum whose floors hold.

    Args:
        sweep: A model's heads on labelled rows that it was not fitted on.
        floors: What must hold, with the lower end of an interval as margin (`Trials`).
        level: Of the interval; 0 asks for no margin.
    """
    if not floors:
        raise UsageError("There must be at least one floor. Got none.")
    trials = Trials(sweep, floors, level)
    current, point = trials.trial(sweep.weights), price_floors(trials)
    feasible, prices = True, dict[str, float]()
    conflict: tuple[Floor, ...] = ()
    if point is None:
        nearest = nearest_to(trials)
        feasible = nearest.worst >= 0 or trials.best is not None
        if feasible:
            point = eased(trials, nearest if nearest.worst >= 0 else trials.best or nearest)
        else:
            point, conflict = nearest, conflict_of(sweep, floors, level)
    if feasible:
        each = prices_of(point.weights, sweep.count)
        events = {floor.objective for floor in floors if floor.k is not None}
        prices = {
            n: float(each[sweep.names.index(n)])
            for n in dict.fromkeys(floor.objective for floor in floors)
            if n not in events
        }
    return Guarded(
        names=sweep.names,
        floors=trials.floors,
        feasible=feasible,
        point=replace(point, weights=point.weights * sweep.signs),
        current=current,
        prices=prices,
        conflict=conflict,
        margin=level > 0,
        where="within requests" if sweep.within else "over all rows",
        today=None if sweep.today is None else trials.figures(None),
    )
