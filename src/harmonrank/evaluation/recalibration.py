"""Recalibrated: a model for upstream scores that have changed, and what that changes."""

__all__ = ["Recalibrated", "recalibration"]

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from harmonrank.data import Log, Source
from harmonrank.evaluation.drift_notes import drift_notes
from harmonrank.fusion import Method
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.drift.reference import recent_rows
from harmonrank.fusion.drift.shares import Changed
from harmonrank.fusion.quality.areas import known
from harmonrank.metrics import spearman
from harmonrank.support.table import Table, Tabular

_SHOWN_ROWS = 100_000
_SAME = 0.9995


@dataclass(frozen=True, repr=False)
class Recalibrated(Tabular):
    """A recalibrated model beside the one before.

    Attributes:
        before: The model as it was.
        model: The new one.
        drift: Of the scores since the fit.
        shares: How far each score column was changed, from 0 to 1.
        rows: The recent rows.
    """

    before: Method
    model: Method
    drift: Drift
    shares: Mapping[str, float]
    rows: Log = field(repr=False)

    @cached_property
    def rank_correlation(self) -> float | None:
        """Spearman's ρ between the fused scores of both, on at most 100,000 rows."""
        some = self.rows.sampled(_SHOWN_ROWS)
        both = np.column_stack([each.score(some) for each in (self.before, self.model)])
        return known(float(spearman(both)[0, 1]))

    @property
    def notes(self) -> list[str]:
        """Which scores were changed, and by what evidence."""
        return drift_notes(self.drift, recalibrated=True, shares=self.shares)

    def to_table(self) -> Table:
        """Return the drift of each score, and how much the ranking changes."""
        table, rho, said = self.drift.to_table(), self.rank_correlation, []
        if rho is not None and rho > _SAME:
            said = [f"The new model ranks these rows as the old one does: Spearman's ρ {rho:.3f}."]
        elif rho is not None:
            said = [f"It orders these rows differently: Spearman's ρ {rho:.3f} with the old one."]
        return replace(table, notes=(*table.notes, self.notes[0], *said))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        told = {"rank_correlation": self.rank_correlation, "recalibrated": dict(self.shares)}
        return {**told, **self.drift.to_dict()}


def recalibration(model: Method, table: Source, *, scores: Changed = "proven") -> Recalibrated:
    """Recalibrate a model on recent rows, and tell what that changes.

    Args:
        model: A fitted model.
        table: At least 1,000 rows; labels are not needed.
        scores: As for `recalibrated`.
    """
    log = recent_rows(table, model.schema)
    shares = model.corrections(log, scores=scores)
    return Recalibrated(
        model, model.recalibrated(log, scores=shares), model.drift(log), shares, log
    )
