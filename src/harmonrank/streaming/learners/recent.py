"""Recent rows: from which the drift of a model counts that goes on learning.

What a learner has followed is no drift, so drift counts from the newest rows that were learned and
not from all of them. There are enough to tell a replaced upstream model from other rows
(`harmonrank.fusion.drift.replacement`): of a large batch a sample, of small ones several.
"""

__all__ = ["RECENT", "recent_rows"]

from harmonrank.data import Log
from harmonrank.data.rows.kept_rows import concatenated, newest, unlabelled

RECENT = 20_000
"""How many rows drift counts from."""


def recent_rows(before: Log | None, rows: Log) -> Log:
    """Return the recent rows after a batch was learned, given those before it."""
    found = unlabelled(rows.sampled(RECENT))
    return found if before is None else newest(concatenated([before, found]), RECENT)
