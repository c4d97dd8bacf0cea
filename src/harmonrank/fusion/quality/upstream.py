"""Upstream: how well each score ranks by itself."""

__all__ = ["Upstream", "upstream_of"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.fusion.quality.outcomes import outcomes_of, true_outcomes
from harmonrank.metrics import Interval, auc, auc_interval


@dataclass(frozen=True)
class Upstream:
    """One score, taken alone; rows in which it is missing do not count.

    Attributes:
        auc: Of its own objective, by labels, with its interval.
        exact_auc: The same by true probabilities, in a world.
        auc_sum: Σ_m w_m AUC_m if it were the fused score, by labels.
    """

    column: str
    auc: Interval
    exact_auc: float | None
    auc_sum: float

    @property
    def area(self) -> float:
        """The AUC by true probabilities where they are known, else by labels."""
        return self.auc.estimate if self.exact_auc is None else self.exact_auc

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON parts; one that is not known is null."""
        return {
            "score": self.column,
            "auc": _known(self.auc.estimate),
            "auc_ci": [_known(self.auc.low), _known(self.auc.high)],
            "exact_auc": self.exact_auc,
            "auc_sum": _known(self.auc_sum),
        }


def upstream_of(log: Log, weights: np.ndarray) -> dict[str, Upstream]:
    """Measure every score of a log alone, by objective."""
    return {name: _upstream(log, m, weights) for m, name in enumerate(log.schema.names)}


def _upstream(log: Log, m: int, weights: np.ndarray) -> Upstream:
    known = np.flatnonzero(~np.isnan(log.scores[:, m]))
    rows = log if len(known) == log.rows else log.take(known)
    score, weight = rows.scores[:, m], rows.sample_weight
    (own,) = auc_interval(score, outcomes_of(rows, [m]), groups=rows.request, sample_weight=weight)
    exact = None
    if rows.truth is not None:
        exact = float(auc(score, true_outcomes(rows, [m]), sample_weight=rows.own_weight)[0])
    areas, used = auc(score, outcomes_of(rows), sample_weight=weight), weights != 0
    total = float(areas[used] @ weights[used])
    return Upstream(log.schema.score_columns[m], own, exact, total)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
