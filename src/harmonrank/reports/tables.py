"""Tables of a report, made from its facts; a table without rows is left out."""

__all__ = [
    "calibration_table",
    "context_table",
    "drift_table",
    "objective_table",
    "prediction_table",
    "result_table",
    "volume_table",
]

from collections.abc import Mapping
from typing import Any

from harmonrank.reports.drift import PSI_DRIFTED, PSI_MOVED
from harmonrank.reports.facts import Facts
from harmonrank.reports.model_facts import Bin
from harmonrank.reports.plots import Table


def result_table(facts: Facts) -> tuple[Table, ...]:
    """Return the leaderboard, or the one row of a single model."""
    board = facts.board
    compared = len(board["methods"]) > 1
    gap = "behind best" if board["ceiling"] is None else "regret"
    columns = ("method", "AUC-sum", "low", "high", gap, *board["objectives"])
    columns += ("fit s",) if compared else ()
    formats = dict.fromkeys(columns, ".4f") | {"fit s": ".1f"}
    formats |= dict.fromkeys(board["objectives"], ".3f")
    rows = []
    for place, m in enumerate(board["methods"]):
        if m["error"] is None:
            rows.append(_result(m, board, place) + ((m["fit_seconds"],) if compared else ()))
    return _unless_empty(Table(columns, tuple(rows), formats))


def _result(m: Mapping[str, Any], board: Mapping[str, Any], place: int) -> tuple[Any, ...]:
    areas = m.get("exact_auc") or m["auc"]
    total = m["auc_sum"] if m.get("exact_auc_sum") is None else m["exact_auc_sum"]
    apart = m.get("behind_best") if board["ceiling"] is None else m["regret"]
    tied = " =" if m.get("tied_with_best") and place else ""
    return (m["name"] + tied, total, *m["ci"], apart, *(areas[o] for o in board["objectives"]))


def prediction_table(facts: Facts) -> tuple[Table, ...]:
    """Return how well each score ranks its own objective, beside the truth where it is known."""
    known = any(p["truth_auc"] is not None for p in facts.prediction.values())
    columns: tuple[str, ...] = ("objective", "positives", "share", "AUC")
    columns += ("AUC of the truth",) * known + ("ECE",)
    rows = tuple(
        (name, p["positives"], p["prevalence"], p["auc"])
        + ((p["truth_auc"],) * known)
        + (p["ece"],)
        for name, p in facts.prediction.items()
    )
    formats = {"share": ".3%", "AUC": ".4f", "AUC of the truth": ".4f", "ECE": ".5f"}
    return _unless_empty(Table(columns, rows, formats))


def volume_table(facts: Facts) -> tuple[Table, ...]:
    """Return the hypervolume of each pair of objectives."""
    rows = tuple((f"{t.first} – {t.second}", t.volume, t.best_volume) for t in facts.tradeoffs)
    columns = ("pair", "hypervolume", "best possible")
    return _unless_empty(Table(columns, rows, dict.fromkeys(columns, ".4f")))


def calibration_table(facts: Facts) -> tuple[Table, ...]:
    """Return how far each method's probabilities are from what came, per objective."""
    curves = {n: f.calibration for n, f in facts.methods.items() if f.calibration}
    if not curves:
        return ()
    curves["upstream scores"] = facts.upstream
    rows = tuple((n, *map(_relative_error, bins)) for n, bins in curves.items())
    columns = ("method", *facts.board["objectives"])
    return (Table(columns, rows, dict.fromkeys(columns[1:], ".1%")),)


def _relative_error(bins: tuple[Bin, ...]) -> float:
    """Return Σ n|predicted − observed| / Σ n·observed over the bins."""
    came = sum(b.rows * b.observed for b in bins)
    away = sum(b.rows * abs(b.predicted - b.observed) for b in bins)
    return away / came if came else float("nan")


def drift_table(facts: Facts) -> tuple[Table, ...]:
    """Return how far each score moved, with a verdict."""

    def verdict(psi: float) -> str:
        return "stable" if psi < PSI_MOVED else "moved" if psi < PSI_DRIFTED else "drifted"

    rows = tuple((d.name, d.psi, d.ks, verdict(d.psi)) for d in facts.drift)
    formats = {"PSI": ".4f", "KS": ".4f"}
    return _unless_empty(Table(("score", "PSI", "KS", "verdict"), rows, formats))


_OBJECTIVE = {
    "objective": ("name", ""),
    "score column": ("score", ""),
    "weight": ("weight", "g"),
    "effective": ("effective_weight", ".1%"),
    "positives": ("positives", ",d"),
    "prevalence": ("prevalence", ".3%"),
    "in training": ("train_prevalence", ".3%"),
    "mean score": ("mean_score", ".3%"),
    "one-class requests": ("one_class", ".1%"),
}
_CONTEXT = {
    "context": ("name", ""),
    "values": ("values", ",d"),
    "most common": ("most_common", ""),
    "its share": ("most_common_share", ".1%"),
    "unseen in training": ("unseen", ".3%"),
}


def objective_table(facts: Facts) -> tuple[Table, ...]:
    """Return how common each objective is and what it counts."""
    return _attributes(_OBJECTIVE, facts.data.objectives)


def context_table(facts: Facts) -> tuple[Table, ...]:
    """Return the context columns and their values."""
    return _attributes(_CONTEXT, facts.data.context)


def _attributes(
    columns: Mapping[str, tuple[str, str]], things: tuple[Any, ...]
) -> tuple[Table, ...]:
    rows = tuple(tuple(getattr(thing, name) for name, _ in columns.values()) for thing in things)
    formats = {column: form for column, (_, form) in columns.items()}
    return _unless_empty(Table(tuple(columns), rows, formats))


def _unless_empty(table: Table) -> tuple[Table, ...]:
    return (table,) if table.rows else ()
