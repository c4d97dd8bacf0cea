"""CompareBlocks: the tables of a comparison that are larger than memory."""

__all__ = ["CompareBlocks"]

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from harmonrank.data import Log
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.evaluation.entry import Entry
from harmonrank.evaluation.partitioned import partitioned_quality, put_into
from harmonrank.fusion import Method


@dataclass(frozen=True)
class CompareBlocks:
    """Tables in blocks, of which a comparison has whole requests in memory.

    Attributes:
        train: Rows to learn from; None where they are in memory.
        test: Rows to measure on, likewise.
        most_rows: On how many rows a method is fitted that needs them in memory.
        valid: Rows for early stopping and selection, likewise.
    """

    train: LogBlocks | None
    test: LogBlocks | None
    most_rows: int
    valid: LogBlocks | None = None

    def fitted(self, method: Method, valid: Log | None, seed: int, on_event: Any) -> bool:
        """Fit a method on the blocks; tell whether there are any.

        Args:
            method: What to fit.
            valid: Validation rows that are in memory; those in blocks come first.
            seed: As for `Method.fit`.
            on_event: As for `Method.fit`.
        """
        if self.train is None:
            return False
        held = self.valid or valid
        method.fit(self.train, self.train.schema, valid=held, seed=seed, on_event=on_event)
        return True

    def measured(self, entry: Entry, scorer: Method) -> Entry:
        """Return an entry of sampled rows with the AUCs of all rows in their place.

        What was resampled is moved along, and narrowed as the rows are more.
        """
        if self.test is None or entry.quality is None:
            return entry
        known = partitioned_quality(scorer, self.test)
        some = np.array([area.estimate for area in entry.quality.auc.values()])
        narrower = sqrt(min(1.0, entry.quality.rows / known.rows))
        moved = entry.resampled
        if moved.size:
            areas = np.array([area.estimate for area in known.auc.values()])
            moved = areas + narrower * (moved - some)
        return replace(entry, quality=put_into(known, entry.quality), resampled=moved)
