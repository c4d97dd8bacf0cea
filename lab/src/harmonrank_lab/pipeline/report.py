"""What a predictor reached: a table for the terminal, and the same numbers."""

__all__ = ["predictor_facts", "predictor_table"]

from collections.abc import Mapping
from statistics import mean
from typing import Any

from harmonrank.support import Table, table_of
from harmonrank_lab.upstream import FULL, Predictor


def predictor_facts(predictor: Predictor) -> dict[str, Any]:
    """Return what the validation rows say of a predictor, as JSON parts."""
    full = predictor.members[FULL].facts
    folds = [m.facts for name, m in predictor.validated.items() if name != FULL]
    finals = [member.facts for member in predictor.finals.values()]
    objectives = {}
    for m, name in enumerate(predictor.objectives):
        error = full.calibration[m]
        known = [area for fold in folds if (area := fold.valid_auc[m]) is not None]
        objectives[name] = {"auc": full.valid_auc[m], "fold_auc": mean(known) if known else None}
        objectives[name] |= {"positives": error.positives}
        objectives[name] |= {"ece_before": error.before, "ece_after": error.after}
    return {
        "network": predictor.config.network,
        "folds": len(folds),
        "by": None if predictor.folds is None else predictor.folds.by,
        "epochs": full.best_epoch + 1,
        "refits": len(finals),
        "refit_epochs": finals[0].best_epoch + 1 if finals else None,
        "seconds": sum(f.seconds or 0.0 for f in (full, *folds, *finals)),
        "rows_per_second": full.rows_per_second,
        "valid": objectives,
    }


def predictor_table(facts: Mapping[str, Any]) -> Table:
    """Return AUC and calibration error of every objective on the validation rows."""
    formats = {"AUC": ".4f", "AUC, folds": ".4f", "ECE before": ".5f", "after": ".5f"}
    parts = ("positives", "auc", "fold_auc", "ece_before", "ece_after")
    rows = [
        (name, *(measured[part] for part in parts)) for name, measured in facts["valid"].items()
    ]
    networks = "1 network" if facts["refits"] == 1 else f"{facts['refits']} networks"
    note = (
        f"New rows are scored by {networks} that also learned from these validation rows "
        f"(epochs: {facts['refit_epochs']})."
    )
    notes = (note,) if facts["refits"] else ()
    return table_of(("objective", "positives", *formats), rows, formats, notes=notes)
