"""Tables of results, made from facts; one without rows is left out of a page."""

__all__ = [
    "calibration_table",
    "context_table",
    "drift_table",
    "explanation_table",
    "objective_table",
    "prediction_table",
    "upstream_table",
]

from collections.abc import Mapping
from typing import Any

from harmonrank.paper.health import Health
from harmonrank.reports.facts import Facts
from harmonrank.reports.figures.methods import UPSTREAM
from harmonrank.reports.model_facts import Bin
from harmonrank.reports.stability import PSI_DRIFTED, PSI_MOVED
from harmonrank.support.table import Column, Table, table_of

_EXPLAINED = {
    "value": "g",
    "weight": ".4g",
    "prevalence": ".3%",
    "effective_weight": ".1%",
    "noise_share": ".0%",
    "effects": ".0f",
}


def explanation_table(
    method: str,
    facts: Mapping[str, Mapping[str, float]],
    health: Health | None = None,
    examination: Mapping[int, float] | None = None,
    optimises: str = "all",
) -> Table:
    """Return what a method learned of each objective, an objective per row, and its health.

    Below are the chances that places are looked at, where its feedback was corrected for them.
    """
    columns = [Column(f.replace("_", " "), _EXPLAINED.get(f, ".3f"), widest=10) for f in facts]
    rows = [(name, *(values[name] for values in facts.values())) for name in facts["weight"]]
    note = "Effective weight: w/(π(1−π)), what a unit of probability counts."
    if optimises == "requests":
        note = (
            "Fitted for AUC within requests. Effective weight: what a unit of probability counts "
            "in a usual row."
        )
    if "value" in facts:
        note = "Ranked by expected value: a value v is the weight vπ(1−π), effectively v."
    notes = [note] if health is None else [note, health.words(), health.warning() or ""]
    if examination:
        chances = ", ".join(f"{place} {chance:.2f}" for place, chance in examination.items())
        notes.append(f"Chance that each place is looked at: {chances}.")
    head, shown = Column("objective"), tuple(n for n in notes if n)
    return Table((head, *columns), tuple(rows), title=f"Method: {method}", notes=shown)


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
    """Return how well each upstream score ranks by itself."""
    exact = facts.board.ceiling is not None
    columns = (
        "objective",
        "score column",
        "AUC",
        "95 % interval",
        *["exact AUC"] * exact,
        "AUC-sum",
    )
    rows = [
        (name, s.column, s.auc.estimate, str(s.auc), *[s.exact_auc] * exact, s.auc_sum)
        for name, s in facts.board.upstream.items()
    ]
    return table_of(columns, rows, dict.fromkeys(("AUC", "exact AUC", "AUC-sum"), ".4f"))


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
