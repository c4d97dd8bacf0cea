"""The online experiment: lifts of each arm over MBCE on a simulated platform."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank import __version__
from harmonrank.support import FitStep, OnEvent
from harmonrank_lab.experiments.online import HourEnded, OnlineResult, run_online
from harmonrank_lab.paper_tables import _table
from harmonrank_lab.paper_tables._data import Data, StudyCell
from harmonrank_lab.paper_tables._study import NAMES, Experiment, Results, Study, minus
from harmonrank_lab.paper_tables._table import FIGURES, PaperTable, Row, Verdict

_ARMS = {"base": "mbce", "rl": "reinforce", "paper": "harmonrank-paper", "ours": "harmonrank"}


@dataclass(frozen=True)
class OnlineCell(StudyCell):
    """One closed loop of serving, answers, delayed labels and learning."""

    data: Data = field(compare=False)
    seed: int
    rules: Mapping[str, int]

    @property
    def name(self) -> str:
        """World and seed."""
        return f"{self.data.name} online seed={self.seed}"

    def identity(self) -> dict[str, Any]:
        """Return world, seed and rules."""
        own = {"online": self.data.name, "seed": self.seed, "rules": dict(self.rules)}
        return {**own, "arms": _ARMS, "version": __version__}

    def run(self, on_event: OnEvent, checkpoint: Path) -> dict[str, Any]:  # noqa: ARG002
        """Run the experiment."""

        def progress(event: HourEnded) -> None:
            on_event(FitStep(event.hour + 1, event.hours))

        rules: dict[str, Any] = dict(self.rules)
        result = run_online(self.data.name, seed=self.seed, arms=_ARMS, progress=progress, **rules)
        return result.to_dict()

    def decoded(self, content: Any) -> dict[str, Any]:
        """Return a stored result; what is not finite is null in it."""
        if "error" in content:
            return super().decoded(content)
        OnlineResult.from_dict(content)
        return dict(content)


def _cells(study: Study) -> list[OnlineCell]:
    return [OnlineCell(study.data, seed, study.settings.online) for seed in study.seeds]


def _paper(study: Study, arm: str, outcome: str) -> float | None:
    return study.paper(FIGURES["online"].get(_ARMS[arm], {}).get(outcome))


def _measured(result: OnlineResult) -> list[Row]:
    """Return what a platform would see, users split among the arms."""
    rows = []
    for arm, method in _ARMS.items():
        for name in result.objectives if arm != "base" else ():
            lift = result.analysis.lift(arm, name)
            if not isfinite(lift.low + lift.lift + lift.high):
                # Nobody in the control did it, so there is nothing to compare with.
                continue
            seen = _table.Estimate(lift.lift, lift.low, lift.high, 1)
            rows.append(Row(f"{NAMES[method]}, as measured, seed 0", name, "%", None, seen))
    return rows


def _verdicts(
    study: Study, lifts: Mapping[tuple[str, str], np.ndarray], outcomes: tuple[str, ...]
) -> list[Verdict]:
    verdicts = []
    for name in outcomes:
        paper, above = _paper(study, "paper", name), lifts["paper", name]
        gap = minus(paper, _paper(study, "rl", name))
        claim, more = f"HarmonRank raises {name} over MBCE", above - lifts["rl", name]
        verdicts.append(_table.verdict(claim, above, paper=paper, unit="%"))
        claim = f"HarmonRank raises {name} more than RL"
        verdicts.append(_table.verdict(claim, more, paper=gap, unit="%"))
        claim = f"our default harmonrank raises {name} over MBCE"
        verdicts.append(_table.verdict(claim, lifts["ours", name], unit="%", source="ours"))
    return verdicts


def _facts(results: list[OnlineResult]) -> dict[str, int]:
    """Return how many experiments raised the alarm of each check."""
    checks = [one.analysis for one in results]
    ratio = sum(check.sample_ratio.alarm for check in checks)
    return {"ratio": ratio, "same": sum(c.aa.alarm for c in checks), "count": len(checks)}


class Online(Experiment):
    """A closed loop per seed."""

    key = "online"

    def refusal(self, data: Data) -> str:
        """Only a world answers what is shown."""
        needs = "The table 'online' needs a world, which answers what is shown."
        return f"{needs} Got '{data.name}'." if data.fixed_rows else ""

    def cells(self, study: Study) -> list[StudyCell]:
        """Return an experiment per seed."""
        return list(_cells(study))

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return the lifts of every arm and what becomes of the claims."""
        each = _cells(study)
        world = study.data.words().partition(",")[0]
        data = f"{world}, other users and candidates for every seed"
        rules = study.settings.online.items()
        told = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in rules)
        settings = f"closed loop: {told}; {len(each)} seeds"
        if error := results.error(each):
            return study.table(self.key, [], [], [error], settings=settings, data=data)
        loops = [OnlineResult.from_dict(results[cell]) for cell in each]
        outcomes = loops[0].objectives
        pairs = [(arm, name) for arm in _ARMS if arm != "base" for name in outcomes]
        lifts = {pair: np.array([[one.exact_lift(*pair).lift] for one in loops]) for pair in pairs}
        rows = []
        for (arm, name), lift in lifts.items():
            group, paper = f"{NAMES[_ARMS[arm]]}, by true chance", _paper(study, arm, name)
            rows.append(Row(group, name, "%", paper, _table.estimate_of(lift)))
        rows += _measured(loops[0])
        verdicts, about = _verdicts(study, lifts, outcomes), {"settings": settings, "data": data}
        return study.table(self.key, rows, verdicts, facts=_facts(loops), **about)
