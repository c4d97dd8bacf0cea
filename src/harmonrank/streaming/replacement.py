"""Replacement: exposures from which on upstream models are other ones."""

__all__ = ["Replacement", "Seen", "agreed", "seen_by"]

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from harmonrank.fusion import Method
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.drift.reference import RECENT_ROWS

_DRIFT_ROWS = 60_000  # of an interval; more would hardly tell more
# Where the whole interval is of both kinds, its newest part may be of the new one alone.
_PARTS = (2, 4)


@dataclass(frozen=True, eq=False)
class Replacement:
    """Upstream models were replaced, at the latest at this time.

    It is kept until the learner reaches it, as the rows that are learned are older.

    Attributes:
        since: From here on scores are those of the new models.
        rows: Exposures with such scores; labels are not needed.
    """

    since: datetime
    rows: pl.DataFrame


@dataclass(frozen=True, eq=False)
class Seen:
    """What a model says about the scores of an interval.

    Attributes:
        drift: Of all rows, or of the newest part in which upstream models are other ones.
        replacement: If they are.
    """

    drift: Drift
    replacement: Replacement | None


def seen_by(model: Method, rows: pl.DataFrame, start: datetime, time: str) -> Seen:
    """Measure the drift of an interval, and find out whether upstream models were replaced in it.

    Args:
        model: What scores are compared with.
        rows: Of the interval, in order of arrival.
        start: Of the interval.
        time: The column of times.
    """
    whole = model.drift(_drawn(rows, _DRIFT_ROWS))
    if whole.replaced:
        return Seen(whole, Replacement(start, _drawn(rows, RECENT_ROWS)))
    for part in _PARTS if whole.moved else ():
        newest = rows[-(rows.height // part) :]
        drift = model.drift(_drawn(newest, _DRIFT_ROWS))
        if drift.replaced:
            since: datetime = newest[time].min()  # type: ignore[assignment]
            return Seen(drift, Replacement(since, _drawn(newest, RECENT_ROWS)))
    return Seen(whole, None)


def _drawn(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return rows drawn at random, in their order; the same ones each time."""
    if rows.height <= most:
        return rows
    rng = np.random.default_rng(0)
    return rows[np.sort(rng.choice(rows.height, most, replace=False, shuffle=False))]


def agreed(old: Seen, new: Seen | None) -> Seen:
    """Return what an older model says, or a newer one where that is no contradiction.

    Time has moved all scores somewhat since an older model learned, which hides what was replaced.
    A newer model can tell; the older one agrees if it sees the same scores moved.
    """
    if old.replacement is not None or new is None or new.replacement is None:
        return old
    return new if set(new.drift.replaced) <= set(old.drift.moved) else old
