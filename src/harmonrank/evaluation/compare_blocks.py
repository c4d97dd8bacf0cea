"""CompareBlocks: the tables of a comparison that are larger than memory."""

__all__ = ["CompareBlocks"]

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from harmonrank.data.log_blocks import LogBlocks
from harmonrank.evaluation.entry import Entry
from harmonrank.methods import Method
from harmonrank.methods.block_fit import fit_in_blocks
from harmonrank.methods.block_quality import exact_quality


@dataclass(frozen=True)
class CompareBlocks:
    """Tables in blocks, of which a comparison has whole requests in memory.

    Attributes:
        train: Rows to learn from; None where they are in memory.
        test: Rows to measure on, likewise.
        most_rows: On how many rows a method is fitted that needs them in memory.
    """

    train: LogBlocks | None
    test: LogBlocks | None
    most_rows: int

    def fitted(self, method: Method, seed: int, on_event: Any) -> bool:
        """Fit a method on the blocks; tell whether there are any."""
        if self.train is None:
            return False
        fit_in_blocks(method, self.train, most_rows=self.most_rows, seed=seed, on_event=on_event)
        return True

    def measured(self, entry: Entry, scorer: Method) -> Entry:
        """Return an entry of sampled rows with the AUCs of all rows in their place.

        What was resampled is moved along, and narrowed as the rows are more.
        """
        if self.test is None or entry.quality is None:
            return entry
        known = exact_quality(scorer, self.test)
        some = np.array([area.estimate for area in entry.quality.auc.values()])
        narrower = sqrt(min(1.0, entry.quality.rows / known.rows))
        moved = entry.resampled
        if moved.size:
            moved = known.areas + narrower * (moved - some)
        return replace(entry, quality=known.put_into(entry.quality), resampled=moved)
