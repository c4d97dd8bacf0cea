"""Recalibration: scores of a changed upstream model on the scale that a method was fitted on."""

__all__ = ["FEWEST_RECENT", "Recalibration", "recent_rows"]

from dataclasses import dataclass

import numpy as np

from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.fusion.drift.reference import RECENT_ROWS, Reference
from harmonrank.support.errors import DataError
from harmonrank.support.logistic import score_logit

FEWEST_RECENT = 1000
"""Fewer rows cannot tell a change from chance."""


@dataclass(frozen=True)
class Recalibration:
    """Matches moments: what any method can do about changed scores without labels.

    With m and d the median and the standard deviation of a score's logit ℓ in the row's context,
    now and at the fit,

        ℓ' = m_fit(c) + d_fit(c) (ℓ − m_now(c)) / d_now(c),

    eq. 11 of docs/default-method.md. A score that has only one value now is taken for the median of
    its context at the fit.

    Attributes:
        fit: Of the rows that the method was fitted on.
        now: Of the rows that it was recalibrated on.
    """

    fit: Reference
    now: Reference

    def scores(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the scores that rows with these codes would have had at the fit, (rows, M)."""
        centre, deviation = self.now.place(codes)
        fit_centre, fit_deviation = self.fit.place(codes)
        alive = (self.now.constant == 0) & (deviation > 0)
        away = (score_logit(scores) - centre) / np.where(alive, deviation, 1.0)
        logits = fit_centre + fit_deviation * np.where(alive, away, 0.0)
        matched: np.ndarray = 1 / (1 + np.exp(-logits))
        return matched


def recent_rows(table: Source, schema: Schema) -> Log:
    """Return the rows of a table that count, drawn at random if there are very many.

    Raises:
        DataError: There are too few of them.
    """
    log = read_log(table, schema, labels=False, sample_weight=True).counted()
    log.require_scores("recent")
    if log.rows < FEWEST_RECENT:
        raise DataError(
            f"Recalibration needs at least {FEWEST_RECENT:,} recent rows that count to tell a "
            f"change from chance. Got {log.rows:,}; wait for more."
        )
    return log.sampled(RECENT_ROWS)
