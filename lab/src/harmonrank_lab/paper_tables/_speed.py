"""Speed: training by each loss and scoring, all in turn, beside the times of the paper."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
from msgspec import Meta

from harmonrank import __version__
from harmonrank.data import Log
from harmonrank.fusion import method_class
from harmonrank.paper import Network, NetworkConfig
from harmonrank.support import BatchEnded, OnEvent, thread_count
from harmonrank_lab.bench._result import rounds
from harmonrank_lab.paper_tables import _table
from harmonrank_lab.paper_tables._data import Data, StudyCell
from harmonrank_lab.paper_tables._study import NAMES, Experiment, Results, Study
from harmonrank_lab.paper_tables._table import FIGURES, PaperTable, Row, Verdict

BATCH = 10_240
_LOSSES = ("mbce", "pairwise-logistic", "aucm", "harmonrank-paper")
_TIMED = {"training-speed": _LOSSES, "inference": ("harmonrank-paper", "harmonrank")}
# So many rows are seen in a turn, enough for a fit to be done by the fused kernels.
_TURN_ROWS = 20 * BATCH
_TURN_SECONDS = 0.05
_FEWEST_ROUNDS, _MOST_ROUNDS = 5, 200

Rate = Callable[[], float]
Kind = Literal["training-speed", "inference"]


class _Speeds(TypedDict):
    """Rows per second of each round, by method, as JSON parts."""

    rates: dict[str, Annotated[list[Annotated[float, Meta(gt=0)]], Meta(min_length=1)]]
    batch: Annotated[int, Meta(ge=1)]
    threads: Annotated[int, Meta(ge=1)]
    load: float | None
    sizes: dict[str, float]


@dataclass(frozen=True)
class SpeedCell(StudyCell):
    """Rounds of timed work; a time belongs to the machine it was measured on."""

    result = _Speeds

    data: Data = field(compare=False)
    kind: Kind
    seconds: float

    @property
    def name(self) -> str:
        """Data and what is timed."""
        return f"{Path(self.data.name).name} {self.kind}"

    def identity(self) -> dict[str, Any]:
        """Return what is timed; not the threads, whose number kernels change as they run."""
        own = {"speed": self.kind, "data": self.data.identity(), "seconds": self.seconds}
        return {**own, "version": __version__}

    def run(self, on_event: OnEvent, checkpoint: Path) -> dict[str, Any]:  # noqa: ARG002
        """Return rows per second of each round, by method."""
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        log = self.data.logs(0, self.data.objectives).train
        log = log.take(np.arange(min(log.rows, _TURN_ROWS)))
        make = _trainer if self.kind == "training-speed" else _scorer
        measured = rates({name: make(name, log) for name in _TIMED[self.kind]}, self.seconds)
        about = {"batch": min(log.rows, BATCH), "threads": thread_count(), "load": load}
        return {"rates": measured, **about, "sizes": _sizes(log)}


def rates(work: Mapping[str, Rate], seconds: float) -> dict[str, list[float]]:
    """Return rows per second, round by round; all have a turn in every round.

    What disturbs the machine then disturbs all of them alike. The first round warms up and is not
    counted; rounds end when the time is used up.

    >>> {name: len(speeds) for name, speeds in rates({"a": lambda: 1.0}, 0.0).items()}
    {'a': 5}
    """
    for run in work.values():
        run()
    speeds: dict[str, list[float]] = {name: [] for name in work}
    for _ in rounds(seconds, _FEWEST_ROUNDS, _MOST_ROUNDS):
        for name, run in work.items():
            speeds[name].append(run())
    return speeds


def _trainer(name: str, log: Log) -> Rate:
    """Return the speed of a short fit's steps, one after another as a user's own would be."""
    epochs = -(-_TURN_ROWS // log.rows)
    options = {"batch_rows": BATCH, "epochs": epochs, "patience": epochs}
    some = log.take(np.arange(min(log.rows, BATCH)))

    def rate() -> float:
        # The first step of an epoch is not timed: validation lies before it.
        steps: list[float] = []
        last = [0.0]

        def on_event(event: Any) -> None:
            now = perf_counter()
            if isinstance(event, BatchEnded):
                if event.step or event.steps == 1:
                    steps.append(now - last[0])
                last[0] = now

        model = method_class(name)(**options)
        last[0] = perf_counter()
        model.fit(log, log.schema, valid=some, on_event=on_event)
        return min(log.rows, BATCH) / float(np.median(steps))

    return rate


def _scorer(name: str, log: Log) -> Rate:
    """Return the speed of scoring one batch, from its columns to fused scores."""
    batch = log.take(np.arange(min(log.rows, BATCH)))
    options = {"epochs": 1} if name == "harmonrank-paper" else {}
    model = method_class(name)(**options).fit(log, log.schema, valid=log)
    model.score(batch)

    def rate() -> float:
        calls, started = 0, perf_counter()
        while perf_counter() - started < _TURN_SECONDS:
            model.score(batch)
            calls += 1
        return calls * batch.rows / (perf_counter() - started)

    return rate


def _sizes(log: Log) -> dict[str, float]:
    """Return parameters outside the tables, and FLOPs of a batch: 2 per multiply-add."""
    features, M = len(log.schema.context), log.scores.shape[1]
    network = Network(NetworkConfig(objectives=M, context_slots=(2,) * features))
    parameters = sum(p.numel() for n, p in network.named_parameters() if not n.endswith("table"))
    d, k = network.config.width, network.config.key_width
    attention = 6 * M * d * k + 4 * M * M * k
    cross = 2 * max(features, 1) * k + 4 * M * k * k + 4 * M * k + 2 * k + 1
    agnostic = M * (2 * d + 1) + M * d + 2 * (2 * M * d + 1) + 2
    return {"parameters": float(parameters), "FLOPs": float(BATCH * (attention + cross + agnostic))}


def _cell(study: Study, kind: Kind) -> SpeedCell:
    return SpeedCell(study.data, kind, study.settings.seconds)


def _measured(rounds: int) -> str:
    return f"timed: {rounds} rounds, all methods in turn in every round; mean over rounds"


def _trained(
    speeds: dict[str, np.ndarray], measured: dict[str, Any]
) -> tuple[list[Row], list[Verdict]]:
    group, paper, verdicts = f"batches of {measured['batch']:,}", FIGURES["speed"], []
    rows = [
        Row(group, NAMES[m], "rows/s", paper[m], _table.estimate_of(v)) for m, v in speeds.items()
    ]
    for fast, slow in pairwise(("mbce", "aucm", "harmonrank-paper", "pairwise-logistic")):
        claim = f"{NAMES[fast]} trains faster than {NAMES[slow]}"
        ours, theirs = (100 * (of[fast] / of[slow] - 1) for of in (speeds, paper))
        verdicts.append(_table.verdict(claim, ours, paper=theirs, unit="%"))
    return rows, verdicts


def _scored(
    speeds: dict[str, np.ndarray], measured: dict[str, Any]
) -> tuple[list[Row], list[Verdict]]:
    batch, printed = measured["batch"], FIGURES["inference"]
    group, rows = f"batches of {batch:,}", []
    times = {name: 1e3 * batch / values for name, values in speeds.items()}
    for what, unit, numbers in (("latency", "ms", times), ("throughput", "rows/s", speeds)):
        for name, values in numbers.items():
            paper = printed[unit] if name == "harmonrank-paper" else None
            rows.append(
                Row(group, f"{NAMES[name]}: {what}", unit, paper, _table.estimate_of(values))
            )
    for unit, count in measured["sizes"].items():
        exact = _table.estimate_of(np.array([[count], [count]]))
        rows.append(Row("network", unit, unit, printed[unit], exact))
    limit = printed["ms"] * batch / BATCH
    claim = f"scores a batch within the paper's {limit:.3g} ms"
    left = {name: limit - took for name, took in times.items()}
    verdicts = [
        _table.verdict(f"HarmonRank {claim}", left["harmonrank-paper"], unit="ms"),
        _table.verdict(f"our default {claim}", left["harmonrank"], unit="ms", source="ours"),
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
        measured = results[_cell(study, self.key)]
        if error := measured.get("error"):
            return study.table(self.key, [], [], [error], settings=_measured(0))
        speeds = {name: np.array(values)[:, None] for name, values in measured["rates"].items()}
        rounds = len(next(iter(speeds.values())))
        load = "" if measured["load"] is None else f", load {measured['load']:.1f} when it began"
        threads = f"{measured['threads']} thread{'s' * (measured['threads'] > 1)}"
        facts = {"threads": threads, "cores": os.cpu_count(), "load": load}
        facts["batch"] = measured["batch"]
        make = _trained if self.key == "training-speed" else _scored
        told = make(speeds, measured)
        return study.table(self.key, *told, facts=facts, settings=_measured(rounds))
