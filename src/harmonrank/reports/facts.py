"""Facts: all that a report shows, as plain numbers and names."""

__all__ = ["Facts", "MethodFacts", "Run", "collect", "run_of"]

import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from harmonrank import __version__
from harmonrank.data import Log
from harmonrank.evaluation import Leaderboard
from harmonrank.fusion import Method
from harmonrank.reports.data_facts import DataFacts, data_facts
from harmonrank.reports.model_facts import (
    Bin,
    Curve,
    attention_of,
    calibration_of,
    pulls_by_context,
    pulls_of,
    response_of,
)
from harmonrank.reports.stability import SHOWN_ROWS, Stability, stability_of
from harmonrank.reports.tradeoffs import Tradeoff, tradeoffs_of
from harmonrank.support.storage.urls import without_secrets

_PACKAGES = ("numpy", "numba", "torch", "polars", "plotly")


@dataclass(frozen=True)
class Run:
    """How a result came about, so that it can be had again."""

    command: str
    seed: int | str | None
    made: str
    versions: dict[str, str]


@dataclass(frozen=True)
class MethodFacts:
    """What a report shows of a fitted method on the test rows; what the method lacks is empty.

    Attributes:
        response: One curve per objective: the fused score as that objective's score moves.
        pulls: How much of the fused score's movement each score causes, shares of 1.
        calibration: Per objective, predicted against observed; only of methods with probabilities.
        attention: (M, M) mean of A_r, of networks with self-attention.
        epochs: One row per epoch: training loss, validation AUC-sum, share of items in gradient.
    """

    response: tuple[Curve, ...] = ()
    pulls: tuple[float, ...] = ()
    calibration: tuple[tuple[Bin, ...], ...] = ()
    attention: tuple[tuple[float, ...], ...] = ()
    epochs: tuple[tuple[float, float, float | None], ...] = ()


@dataclass(frozen=True)
class Facts:
    """One report's content.

    Attributes:
        board: Of a single model, with one entry.
        focus: The method that is looked at closely.
        upstream: Calibration of the scores as they came.
        context_pulls: By context column and value, how much each score moves the focus method.
        prediction: Of each objective, how good its score is on the test rows, where the scores
            are our own.
        caveats: What a reader has to know about where the data come from.
    """

    title: str
    run: Run
    board: Leaderboard
    data: DataFacts
    focus: str | None = None
    methods: Mapping[str, MethodFacts] = field(default_factory=dict)
    upstream: tuple[tuple[Bin, ...], ...] = ()
    context_pulls: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    tradeoffs: tuple[Tradeoff, ...] = ()
    drift: tuple[Stability, ...] = ()
    prediction: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()


def collect(
    title: str,
    run: Run,
    board: Leaderboard,
    models: Mapping[str, Method],
    test: Log,
    *,
    train: Log | None = None,
    prediction: Mapping[str, Mapping[str, Any]] | None = None,
    caveats: Sequence[str] = (),
) -> Facts:
    """Compute what a report shows.

    Args:
        title: Of the page.
        run: Command, seed and versions.
        board: What every method reached.
        models: The fitted methods by name; one that is missing has no curves.
        test: The rows that the leaderboard was measured on.
        train: The training rows; without them nothing is said about drift.
        prediction: How good the scores are, where they are our own.
        caveats: What a reader has to know about where the data come from.
    """
    test, train = test.counted(), None if train is None else train.counted()
    ordered = {name: models[name] for name in board.qualities if name in models}
    focus = "harmonrank" if "harmonrank" in ordered else next(iter(ordered), None)
    some = test.sampled(SHOWN_ROWS)
    looked_at = board.qualities.get(focus or next(iter(board.qualities), ""))
    effective = None if looked_at is None else looked_at.effective_weights
    return Facts(
        title=title,
        run=run,
        board=board,
        data=data_facts(test, train, effective=effective, warnings=board.warnings),
        focus=focus,
        methods={name: _method_facts(model, test) for name, model in ordered.items()},
        upstream=calibration_of(test.scores, test),
        context_pulls={} if focus is None else pulls_by_context(ordered[focus], some),
        tradeoffs=() if focus is None else tradeoffs_of(ordered[focus], test, board),
        drift=() if train is None else stability_of(train, test),
        prediction=prediction or {},
        caveats=tuple(caveats),
    )


def _method_facts(model: Method, test: Log) -> MethodFacts:
    probabilities = getattr(model, "probabilities", None)
    some = test.sampled(SHOWN_ROWS)
    return MethodFacts(
        response=response_of(model, some),
        pulls=pulls_of(model, some),
        calibration=() if probabilities is None else calibration_of(probabilities(test), test),
        attention=attention_of(model, test),
        epochs=getattr(model, "history", ()),
    )


def run_of(command: str | None = None, seed: int | str | None = None) -> Run:
    """Describe the present process: when, with which versions, on what machine.

    The command is that which this process was started with, if left out.
    """
    if command is None:
        # A page is passed on; the password or the signature of a table's URL is not.
        command = f"harmonrank {shlex.join(map(without_secrets, sys.argv[1:]))}"
    versions = {"harmonrank": __version__, "Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    versions["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Run(command, seed, made, versions)
