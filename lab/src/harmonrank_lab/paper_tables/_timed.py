"""Tables of speed: the paper's times beside ours, which are of another machine."""

__all__ = ["Timed"]

import os
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from harmonrank_lab.paper_tables._cell import StudyCell
from harmonrank_lab.paper_tables._experiment import Experiment
from harmonrank_lab.paper_tables._speed import BATCH, Kind, SpeedCell
from harmonrank_lab.paper_tables._study import NAMES, Results, Study
from harmonrank_lab.paper_tables._table import PaperTable, Row, Verdict
from harmonrank_lab.paper_tables.claims import INFERENCE, SPEED, estimate_of, verdict


def _cell(study: Study, kind: Kind) -> SpeedCell:
    return SpeedCell(study.data, kind, study.settings.seconds)


_TITLES = {"training-speed": "Training speed by loss", "inference": "Cost of scoring"}
_MORE = {
    "training-speed": "A step of the fused kernels and Adam, the loss between them. The paper's "
    "speeds include reading its stream, on a machine it does not name.",
    "inference": "From scores and context columns to fused scores, on the processor. The paper's "
    "are of a T4 graphics card.",
}


def _measured(rounds: int) -> str:
    return f"timed: {rounds} rounds, all methods in turn in every round; mean over rounds"


def _trained(
    speeds: dict[str, np.ndarray], found: dict[str, Any]
) -> tuple[list[Row], list[Verdict]]:
    group = f"batches of {found['batch']:,}"
    rows = [
        Row(group, NAMES[name], "rows/s", SPEED[name], estimate_of(values))
        for name, values in speeds.items()
    ]
    order = ("mbce", "aucm", "harmonrank-paper", "pairwise-logistic")
    verdicts = [
        verdict(
            f"{NAMES[fast]} trains faster than {NAMES[slow]}",
            100 * (speeds[fast] / speeds[slow] - 1),
            paper=100 * (SPEED[fast] / SPEED[slow] - 1),
            unit="%",
        )
        for fast, slow in pairwise(order)
    ]
    return rows, verdicts


def _scored(
    speeds: dict[str, np.ndarray], found: dict[str, Any]
) -> tuple[list[Row], list[Verdict]]:
    batch = found["batch"]
    group = f"batches of {batch:,}"
    times = {name: 1e3 * batch / values for name, values in speeds.items()}
    paper = {name: INFERENCE if name == "harmonrank-paper" else {} for name in speeds}
    rows = [
        Row(group, f"{NAMES[n]}: latency", "ms", paper[n].get("ms"), estimate_of(t))
        for n, t in times.items()
    ]
    rows += [
        Row(group, f"{NAMES[n]}: throughput", "rows/s", paper[n].get("rows/s"), estimate_of(v))
        for n, v in speeds.items()
    ]
    for unit, count in found["sizes"].items():
        exact = estimate_of(np.array([[count], [count]]))
        rows.append(Row("network", unit, unit, INFERENCE[unit], exact))
    published = "harmonrank-paper"
    limit = INFERENCE["ms"] * batch / BATCH
    verdicts = [
        verdict(
            f"HarmonRank scores a batch within the paper's {limit:.3g} ms",
            limit - times[published],
            unit="ms",
        ),
        verdict(
            f"our default scores a batch within the paper's {limit:.3g} ms",
            limit - times["harmonrank"],
            unit="ms",
            source="ours",
        ),
    ]
    return rows, verdicts


@dataclass(frozen=True)
class Timed(Experiment):
    """Speeds beside the paper's, which were measured on another machine."""

    key: Kind

    def cells(self, study: Study) -> list[StudyCell]:
        """Return the one measurement."""
        return [_cell(study, self.key)]

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return speeds beside the paper's, which were measured on another machine."""
        found = results[_cell(study, self.key)]
        if "error" in found:
            return study.table(
                self.key, _TITLES[self.key], [], [], [found["error"]], settings=_measured(0)
            )
        speeds = {name: np.array(values)[:, None] for name, values in found["rates"].items()}
        rounds = len(next(iter(speeds.values())))
        load = "" if found["load"] is None else f", load {found['load']:.1f} when it began"
        threads = f"{found['threads']} thread{'s' * (found['threads'] > 1)}"
        notes = [
            f"{threads} of {os.cpu_count()} cores{load}; "
            f"batches of {found['batch']:,} rows. " + _MORE[self.key]
        ]
        make = _trained if self.key == "training-speed" else _scored
        rows, verdicts = make(speeds, found)
        settings = _measured(rounds)
        return study.table(self.key, _TITLES[self.key], rows, verdicts, notes, settings=settings)
