"""Tables of results, made from facts; one without rows is left out of a page."""

__all__ = [
    "calibration_table",
    "context_table",
    "drift_table",
    "lift_table",
    "objective_table",
    "prediction_table",
    "upstream_table",
]

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harmonrank.evaluation.baseline import TODAY
from harmonrank.evaluation.verdict import percents
from harmonrank.reports.facts import Facts
from harmonrank.reports.figures.methods import UPSTREAM
from harmonrank.reports.model_facts import Bin
from harmonrank.reports.stability import PSI_DRIFTED, PSI_MOVED
from harmonrank.support.table import Column, Table, table_of


def prediction_table(prediction: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return how well each score ranks its own objective, beside the truth where it is known."""
    known = any(p["truth_auc"] is not None for p in prediction.values())
    columns = ("objective", "positives", "share", "AUC", *["AUC of the truth"] * known, "ECE")
    rows = [
        (name, p["positives"], p["prevalence"], p["auc"], *[p["truth_auc"]] * known, p["ece"])
        for name, p in prediction.items()
    ]
    formats = {"share": ".3%", "AUC": ".4f", "AUC of the truth": ".4f", "ECE": ".5f"}
    return table_of(columns, rows, formats)


def upstream_table(facts: Facts) -> Table:
    """Return how well each upstream score ranks by itself, by what decides first."""
    board = facts.board
    within, exact = board.criterion == "within requests", board.best_possible is not None
    columns = ("objective", "score column", "within requests" if within else "AUC")
    # What labels tell has no place beside true probabilities.
    others = (
        *["over all rows"] * within,
        *["95 % interval", "AUC-sum over all rows"] * (not exact),
    )
    rows = []
    for name, score in board.upstream.items():
        best = score.decisive(board.criterion)
        whole = score.whole.areas.values() if within else ()
        labels = () if exact else (*map(str, best.auc.values()), score.auc_sum)
        rows.append((name, score.column, *best.areas.values(), *whole, *labels))
    return table_of((*columns, *others), rows, dict.fromkeys((*columns[2:], *others), ".4f"))


def lift_table(facts: Facts) -> Table:
    """Return what the first k of a request hold more than by what ranks today, or by the best."""
    board = facts.board
    entries = [entry for entry in board.entries if entry.events]
    if not entries:
        return table_of((), ())
    base = next((entry for entry in entries if entry.name == TODAY), entries[0])
    lifts = {e.name: e.lifts(base) for e in entries if e is not base}
    rows = [(name, *map(percents, each.values())) for name, each in lifts.items() if each]
    title = f"Events in the first {base.k} of a request, against {base.name}"
    return replace(table_of(("method", *board.objectives), rows), title=title)


def calibration_table(facts: Facts) -> Table:
    """Return how far each method's probabilities are from what came, per objective."""
    curves = {n: f.calibration for n, f in facts.methods.items() if f.calibration}
    if curves:
        curves[UPSTREAM] = facts.upstream
    rows = [(n, *map(_relative_error, bins)) for n, bins in curves.items()]
    objectives = facts.board.objectives
    return table_of(("method", *objectives), rows, dict.fromkeys(objectives, ".1%"))


def _relative_error(bins: tuple[Bin, ...]) -> float:
    """Return Σ n|predicted − observed| / Σ n·observed over the bins."""
    came = sum(b.rows * b.observed for b in bins)
    away = sum(b.rows * abs(b.predicted - b.observed) for b in bins)
    return away / came if came else float("nan")


def drift_table(facts: Facts) -> Table:
    """Return how far each score moved, with a verdict."""

    def verdict(psi: float) -> str:
        return "stable" if psi < PSI_MOVED else "moved" if psi < PSI_DRIFTED else "drifted"

    rows = [(d.name, d.psi, d.ks, verdict(d.psi)) for d in facts.drift]
    return table_of(("score", "PSI", "KS", "verdict"), rows, {"PSI": ".4f", "KS": ".4f"})


_OBJECTIVE = {
    "name": Column("objective"),
    "score": Column("score column"),
    "weight": Column("weight", "g"),
    "effective_weight": Column("effective", ".1%"),
    "positives": Column("positives"),
    "prevalence": Column("prevalence", ".3%"),
    "train_prevalence": Column("in training", ".3%"),
    "mean_score": Column("mean score", ".3%"),
    "one_class": Column("one-class requests", ".1%"),
}
_CONTEXT = {
    "name": Column("context"),
    "values": Column("values"),
    "most_common": Column("most common"),
    "most_common_share": Column("its share", ".1%"),
    "unseen": Column("unseen in training", ".3%"),
}


def objective_table(facts: Facts) -> Table:
    """Return how common each objective is and what it counts."""
    return _attributes(_OBJECTIVE, facts.data.objectives)


def context_table(facts: Facts) -> Table:
    """Return the context columns and their values."""
    return _attributes(_CONTEXT, facts.data.context)


def _attributes(columns: Mapping[str, Column], things: tuple[Any, ...]) -> Table:
    rows = tuple(tuple(getattr(thing, name) for name in columns) for thing in things)
    return Table(tuple(columns.values()), rows)
