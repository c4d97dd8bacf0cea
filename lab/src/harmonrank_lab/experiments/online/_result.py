"""OnlineResult: what a simulated experiment found, and what it could not know."""

__all__ = ["HourEnded", "OnlineResult"]

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import polars as pl

from harmonrank.support.storage import decode
from harmonrank_lab.experiments.ab import Analysis, Lift


@dataclass(frozen=True)
class HourEnded:
    """An hour of the experiment is over; `hour` counts from 0."""

    hour: int
    hours: int


@dataclass(frozen=True)
class OnlineResult:
    """A simulated experiment.

    Attributes:
        arms: Name of each arm and its method.
        settings: The config's numbers, the examination of each place and the wait for labels.
        requests: Of the experiment.
        analysis: What a platform would measure: each user saw one arm. All lifts in percent.
        exact: What only a simulation knows: every arm ranks all requests, and answers are counted
            by their true chance. Each arm's models still learned from its own users alone.
        days: Lifts as measured day by day.
        exact_days: The same by true chance.
        log: A row per user and day, as `harmonrank lab ab analyse` reads it; not in the JSON.
        seconds: How long it took.
    """

    world: str
    seed: int
    objectives: tuple[str, ...]
    arms: Mapping[str, str]
    settings: Mapping[str, Any]
    requests: int
    analysis: Analysis
    exact: tuple[Lift, ...]
    days: tuple[tuple[Lift, ...], ...]
    exact_days: tuple[tuple[Lift, ...], ...]
    log: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    seconds: float = field(default=0.0, compare=False)

    def exact_lift(self, arm: str, outcome: str) -> Lift:
        """Return the exact lift of one arm and outcome."""
        return next(x for x in self.exact if (x.arm, x.outcome) == (arm, outcome))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        parts = {name: value for name, value in vars(self).items() if name != "log"}
        return {
            **parts,
            "arms": dict(self.arms),
            "settings": dict(self.settings),
            "analysis": self.analysis.to_dict(),
            "exact": [asdict(lift) for lift in self.exact],
            "days": [[asdict(lift) for lift in day] for day in self.days],
            "exact_days": [[asdict(lift) for lift in day] for day in self.exact_days],
        }

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Self:
        """Build a result, without its log, from what `to_dict` returned."""
        restored = {
            **parts,
            "analysis": Analysis.from_dict(parts["analysis"]),
            "exact": [Lift.from_dict(lift) for lift in parts["exact"]],
            "days": [[Lift.from_dict(lift) for lift in day] for day in parts["days"]],
            "exact_days": [[Lift.from_dict(lift) for lift in day] for day in parts["exact_days"]],
        }
        return decode(restored, cls, "A simulated experiment")
