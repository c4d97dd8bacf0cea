"""Upstream: how well each score ranks by itself, how many are missing, and what that costs."""

__all__ = ["MissingScores", "Upstream", "missing_of", "upstream_of"]

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from harmonrank.data import Log
from harmonrank.fusion.quality.areas import Areas, areas_of
from harmonrank.fusion.quality.outcomes import outcomes_of
from harmonrank.metrics import Interval, auc, auc_sum_interval

if TYPE_CHECKING:
    from harmonrank.fusion.method import Method

_MOST_ROWS = 100_000
_MOST_NAMED = 6


@dataclass(frozen=True)
class Upstream:
    """One score, taken alone; rows in which it is missing do not count.

    Attributes:
        whole: How it ranks all rows by its own objective.
        requests: How it orders each request by its own objective; None without requests.
        auc_sum: Σ_m w_m AUC_m over all rows if it were the fused score, by labels.
    """

    column: str
    whole: Areas
    requests: Areas | None
    auc_sum: float

    @property
    def auc(self) -> Interval:
        """AUC over all rows by labels."""
        return next(iter(self.whole.auc.values()))

    def decisive(self, criterion: str) -> Areas:
        """Return its areas by the measure of a quality."""
        inside = criterion == "within requests" and self.requests
        return inside or self.whole

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON parts; one that is not known is null."""
        parts: dict[str, Any] = {"score": self.column}
        for before, areas in (("", self.whole), ("request_", self.requests)):
            known = {} if areas is None else areas.to_dict()
            for key in ("auc", "auc_ci", "exact_auc"):
                (parts[f"{before}{key}"],) = (known.get(key) or {"": None}).values()
        return parts | {"auc_sum": None if np.isnan(self.auc_sum) else self.auc_sum}


def upstream_of(log: Log, weights: np.ndarray) -> dict[str, Upstream]:
    """Measure every score of a log alone, by objective."""
    return {name: _upstream(log, m, weights) for m, name in enumerate(log.schema.names)}


def _upstream(log: Log, m: int, weights: np.ndarray) -> Upstream:
    known = np.flatnonzero(~np.isnan(log.scores[:, m]))
    rows = log if len(known) == log.rows else log.take(known)
    score, own = rows.scores[:, m], (rows, np.ones(1), [m])
    areas = auc(score, outcomes_of(rows), sample_weight=rows.sample_weight)
    used = weights != 0
    return Upstream(
        log.schema.score_columns[m],
        areas_of(score, *own),
        None if rows.request is None else areas_of(score, *own, within=True),
        float(areas[used] @ weights[used]),
    )


@dataclass(frozen=True)
class MissingScores:
    """How many scores are missing, by column, and what the model loses by it.

    The loss is measured on rows that miss nothing: they are ranked as they are, and again with
    scores hidden, each row those of a row drawn from the table. So both AUC-sums are of the same
    rows and labels, and their difference is what the gaps of this table cost.

    Attributes:
        rows: Of the table, those that count.
        incomplete: Rows that miss at least one score.
        columns: How many rows miss the score of each column.
        auc_sum: Of rows that miss nothing; None if there are too few of them to tell.
        cost: What of it is lost when scores are hidden, with its interval.
    """

    rows: int
    incomplete: int
    columns: dict[str, int]
    auc_sum: float | None = None
    cost: Interval | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        known = self.cost
        parts = {"rows": self.rows, "incomplete": self.incomplete, "columns": self.columns}
        return parts | {
            "auc_sum_whole": self.auc_sum,
            "cost": None if known is None else known.estimate,
            "cost_ci": None if known is None else [known.low, known.high],
        }

    def __str__(self) -> str:
        counts = sorted((-count, name) for name, count in self.columns.items() if count)
        parts = [f"{name} {-count:,} ({-count / self.rows:.1%})" for count, name in counts]
        more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
        text = f"Missing scores: {', '.join(parts[:_MOST_NAMED])}{more}; "
        text += f"{self.incomplete:,} of {self.rows:,} rows miss one or more."
        if self.cost is None:
            return text
        return (
            f"{text} On rows with all scores, hiding as many costs {self.cost.estimate:.4f} "
            f"({self.cost.low:.4f} to {self.cost.high:.4f}) of an AUC-sum of {self.auc_sum:.4f}."
        )


def missing_of(log: Log, model: "Method | None" = None) -> MissingScores | None:
    """Count the missing scores of a table, and measure what they cost a fitted model.

    Args:
        log: The rows; None is returned if nothing is missing.
        model: Fitted; without one, or without labels, scores are counted only.
    """
    log = log.counted()
    lost = np.isnan(log.scores)
    if not lost.any():
        return None
    incomplete = lost.any(axis=1)
    columns = dict(zip(log.schema.score_columns, lost.sum(axis=0).tolist(), strict=True))
    counts = log.rows, int(incomplete.sum()), columns
    whole = log.take(np.flatnonzero(~incomplete)).sampled(_MOST_ROWS)
    if model is None or log.labels is None or not _measurable(whole):
        return MissingScores(*counts)
    rng = np.random.default_rng(0)  # The same rows each time, as nothing has changed.
    holes = lost[rng.integers(0, log.rows, whole.rows)]
    hidden = whole.with_scores(np.where(holes, np.nan, whole.scores).astype(whole.scores.dtype))
    return MissingScores(*counts, *_cost(model, whole, hidden))


def _measurable(log: Log) -> bool:
    labels = log.known_labels()
    return bool(log.rows and (labels.max(axis=0) > labels.min(axis=0)).all())


def _cost(model: "Method", whole: Log, hidden: Log) -> tuple[float, Interval]:
    """Return the AUC-sum of rows as they are, and how much less it is with scores hidden."""
    fused, labels, weights = model.score(whole), outcomes_of(whole), whole.schema.weight_vector
    areas = auc(fused, labels, sample_weight=whole.sample_weight)
    lost = auc_sum_interval(
        fused,
        labels,
        minus=model.score(hidden),
        objective_weights=weights,
        groups=whole.units,
        sample_weight=whole.sample_weight,
    )
    return float(weights @ areas), lost
