"""Facts: all that a report shows, as plain numbers and names."""

__all__ = ["Facts", "MethodFacts", "Run", "collect", "run_of"]

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from harmonrank.data import Log
from harmonrank.evaluation import Leaderboard
from harmonrank.evaluation.frontier import Frontier, Sweep, frontier_of
from harmonrank.fusion import Method
from harmonrank.reports.data_facts import DataFacts, data_facts
from harmonrank.reports.model_facts import (
    Bin,
    Curve,
    attention_of,
    calibration_of,
    formula_of,
    pulls_by_context,
    pulls_of,
    response_of,
)
from harmonrank.reports.run import Run, run_of
from harmonrank.reports.stability import SHOWN_ROWS, Stability, stability_of
from harmonrank.support.errors import DataError

_PAPER = "harmonrank-paper"
_FRONTIER_ROWS = 50_000
_FRONTIER_POINTS = 150
# Attention that is nowhere farther from 1/M than this, relative to it, tells nothing.
_UNIFORM = 0.05


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
        frontier: What the focus method can trade.
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
    frontier: Frontier | None = None
    drift: tuple[Stability, ...] = ()
    prediction: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    @property
    def formula(self) -> str:
        """What the effective weights of the method that is looked at are."""
        quality = self.board.qualities.get(self.focus or "")
        if self.board.value_k is not None:
            return "value of an event"
        return formula_of("all" if quality is None else quality.optimises)

    @property
    def attention(self) -> dict[str, tuple[tuple[float, ...], ...]]:
        """The attention that is shown, by method: of one at most, and only if it is not uniform."""
        told = {
            name: method.attention
            for name, method in self.methods.items()
            if any(abs(len(row) * p - 1) > _UNIFORM for row in method.attention for p in row)
        }
        # Networks that learn by other losses have it too; the published method speaks for them.
        name = _PAPER if _PAPER in told else next(iter(told), None)
        return {} if name is None else {name: told[name]}


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
        frontier=None if focus is None else _frontier(ordered[focus], test),
        drift=() if train is None else stability_of(train, test),
        prediction=prediction or {},
        caveats=tuple(caveats),
    )


def _frontier(model: Method, test: Log) -> Frontier | None:
    """Return what a method with probabilities can trade; None where there is nothing to trade."""
    if not model.traits.probabilities or len(model.schema.names) < 2:
        return None
    with suppress(DataError):  # Among fewer rows an objective may have one class only.
        sweep = Sweep.of(model, test, rows=_FRONTIER_ROWS)
        return frontier_of(sweep, points=_FRONTIER_POINTS)
    return None


def _method_facts(model: Method, test: Log) -> MethodFacts:
    some, told = test.sampled(SHOWN_ROWS), model.traits.probabilities
    return MethodFacts(
        response=response_of(model, some),
        pulls=pulls_of(model, some),
        calibration=calibration_of(model.probabilities(test), test) if told else (),
        attention=attention_of(model, test),
        epochs=getattr(model, "history", ()),
    )
