"""Evaluate: a model that was fitted before, beside what ranks today."""

__all__ = ["Evaluation", "as_asked", "evaluate"]

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from harmonrank.data import Source, read_log
from harmonrank.engine import Engine, using
from harmonrank.evaluation.baseline import TODAY, Baseline
from harmonrank.evaluation.comparison import Comparison
from harmonrank.evaluation.drift_notes import drift_notes
from harmonrank.evaluation.entry import Entry, drawn_of
from harmonrank.evaluation.leaderboard import leaderboard_of
from harmonrank.evaluation.table_rows import TableRows
from harmonrank.fusion import Method, Quality
from harmonrank.fusion.influence import influence_of
from harmonrank.fusion.method import measured
from harmonrank.fusion.quality.areas import exactly_known
from harmonrank.fusion.quality.block_quality import require_measurable
from harmonrank.fusion.quality.upstream import missing_of
from harmonrank.support.table import Table

_OF_BOARD = ("drift", "upstream", "verdict", "influence", "warnings")


@dataclass(frozen=True, repr=False)
class Evaluation(Comparison):
    """One model's quality, beside what ranks today.

    Attributes:
        auc_sum_as_fitted: Its AUC-sum before it was recalibrated on these rows, if it was.
    """

    auc_sum_as_fitted: float | None = None

    @property
    def model(self) -> Method:
        """What was measured."""
        return next(iter(self.models.values()))

    @property
    def quality(self) -> Quality:
        """How well it ranks."""
        return self.board.qualities[self.model.name]

    @property
    def title(self) -> str:
        """What its page is called."""
        return f"{self.model.name} on {self.board.test_rows:,} rows"

    def to_table(self) -> Table:
        """Return the quality of each objective beside its score alone, and what ranks today."""
        board, (ours,) = self.board, [e for e in self.board.entries if e.name != TODAY]
        alone = (score.decisive(board.criterion).areas for score in board.upstream.values())
        beside = {"alone": {name: area for each in alone for name, area in each.items()}}
        notes = ["Alone: by the upstream score of that objective, in an order of its own."]
        if board.baseline is not None:
            today = board.qualities[TODAY].decisive
            beside[TODAY] = {**today.areas, "sum": today.total}
            told = [f"{TODAY.capitalize()}: {board.baseline.text}.", board.baseline.note]
            notes += filter(None, told)
        behind = {}
        if ours.events:
            behind[f"events@{ours.k}"] = {n: each.estimate for n, each in ours.events.items()}
            notes.append(f"Events@{ours.k}: per request, among its first {ours.k}.")
        table = self.quality.to_table(beside, behind, ours.intervals)
        if board.baseline is not None:
            notes += board.lift_notes()
        return replace(table, title=board.headline, notes=(*table.notes, *notes))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        board, quality, lost = self.board, self.quality, self.missing["test"]
        parts, before, today = board.to_dict(), self.auc_sum_as_fitted, None
        if board.baseline is not None:
            today = {**board.baseline.to_dict(), **board.qualities[TODAY].to_dict()}
        return {
            "method": self.model.name,
            "criterion": board.criterion,
            **quality.to_dict(),
            "events_at_k": next(e.events_dict() for e in board.entries if e.name != TODAY),
            "recalibrated": before is not None,
            "auc_sum_as_fitted": quality.auc_sum.estimate if before is None else before,
            **{key: parts[key] for key in _OF_BOARD},
            "baseline": today,
            "missing": lost and lost.to_dict(),
        }


def evaluate(
    model: Method,
    table: Source,
    *,
    weights: Mapping[str, float] | None = None,
    value: Mapping[str, float] | None = None,
    k: int = 10,
    baseline: str | Baseline | None = None,
    recalibrate: bool = False,
    train: Source | None = None,
    memory: str | None = None,
    engine: Engine | None = None,
    on_rows: Callable[[int, int], None] = lambda *_: None,
) -> Evaluation:
    """Measure how well a fitted model ranks a table that has labels.

    A parquet table that memory cannot hold is read in blocks, and by the workers of an engine:
    AUCs and their intervals are of all rows, all else of some requests.

    Args:
        model: A fitted model.
        table: With labels.
        weights: Other objective weights, for methods that can change them after the fit.
        value: What an event is worth, in place of weights, for methods with probabilities.
        k: Events among how many of a request are counted; their value, where they have one.
        baseline: What ranks today, a column or a formula; the differences to it are resampled.
        recalibrate: First recalibrate on these rows, without labels.
        train: What the model was fitted on; a page then shows how scores have drifted since.
        memory: As for `compare`.
        engine: Whose workers read the table (`open_engine`); this process if left out.
        on_rows: Called with the rows scored and the rows in all, of a table in blocks.
    """
    with using(engine) as workers:
        cluster = workers.name != "local"
        rows = TableRows.by_workers(table, model.schema) if cluster else None
    if rows is None:
        rows = TableRows.read(table, model.schema, memory)
        if rows.blocks is not None:
            require_measurable(model.schema)
    log, asked = rows.log, {"weights": weights, "value": value}
    ranked = Baseline.of(baseline, table, rows.index)
    drift, before = model.drift(log), None
    shares: dict[str, float] = {}
    notes = [] if rows.sampled is None else [rows.sampled.words()]
    if recalibrate or drift.replaced:
        # What is measured must not be decided by the labels that measure it.
        shares = model.corrections(replace(log, labels=None) if recalibrate else log)
    notes += drift_notes(drift, recalibrated=recalibrate, shares=shares)
    if recalibrate:
        fitted = model.evaluate(log, **asked, k=k)
        before, model = fitted.auc_sum.estimate, model.recalibrated(log, scores=shares)
        notes.append(f"As fitted, AUC-sum {fitted.where} is {fitted.decisive.total:.4f}.")
    lost = missing_of(log, model)
    notes += [] if lost is None else [str(lost)]
    log.require_both_classes("evaluated")
    counted = log.counted()
    fused = model.score(counted, **asked)
    quality = measured(model, fused, counted, **asked, k=k)
    merged = model.schema.weights_with(weights)
    # Thousands of AUCs over all rows are worth their time where there is something to compare, or
    # where the truth has no other intervals.
    drawn = drawn_of(fused, counted, k, only_events=ranked is None and not exactly_known(counted))
    entries = [Entry(model.name, None, quality, drawn=drawn, k=k)]
    if ranked is not None:
        worth = model.schema.values_with(value)
        entries.append(ranked.entry(log, merged, model.prevalence, worth, k))
    entries[0] = rows.exact(entries[0], model, moved=False, **asked, on_rows=on_rows)
    named = dict(zip(model.schema.names, merged.tolist(), strict=True))
    weighted = replace(counted, schema=replace(model.schema, weights=named, value={}))
    encoder = model.fitted.encoder
    board = leaderboard_of(None, weighted, entries, drift, baseline=ranked, encoder=encoder)
    model = as_asked(model, weights, value)
    return Evaluation(
        replace(board, influence=influence_of(model, counted)),
        {model.name: model},
        tuple(notes),
        None if train is None else read_log(train, model.schema),
        log,
        missing={"test": lost},
        auc_sum_as_fitted=before,
    )


def as_asked(
    model: Method, weights: Mapping[str, float] | None, value: Mapping[str, float] | None
) -> Method:
    """Return the model with the weights or values that it was measured with as its own."""
    if value is not None:
        return model.valued(value)
    return model if weights is None else model.reweighted(weights)
