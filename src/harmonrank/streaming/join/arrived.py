"""Arrived: a chunk of events as the arrays that the kernels walk over."""

__all__ = ["Arrived"]

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from harmonrank.streaming.join import arrays as code
from harmonrank.streaming.join.arrays import EventArrays, Limits
from harmonrank.streaming.join.tables import keys_of


@dataclass(frozen=True)
class Arrived:
    """A chunk of events.

    Attributes:
        events: The canonical frame.
        arrays: What the kernels need of it.
        outcome: What became of each event, as far as it is known.
        watermark: (events + 1,), before the first event and after each.
        newest: The newest time after the last event.
    """

    events: pl.DataFrame
    arrays: EventArrays
    outcome: np.ndarray
    watermark: np.ndarray
    newest: int

    @classmethod
    def of(
        cls, events: pl.DataFrame, objectives: Sequence[str], newest: int, limits: Limits
    ) -> Self:
        """Return a chunk that follows events of which the newest time is known."""
        kind = _kinds(events)
        times = events["time"].dt.timestamp("us").fill_null(code.NEVER).to_numpy()
        # A malformed event does not move the watermark, whatever it says.
        times = np.where(kind == code.BROKEN, code.NEVER, times)
        latest = np.maximum.accumulate(np.concatenate([[newest], times]))
        watermark = latest - limits.lateness
        closed = (watermark - limits.longest) // limits.every * limits.every
        names = pl.Enum(list(objectives))
        objective = events["objective"].cast(names, strict=False).to_physical()
        arrays = EventArrays(
            kind,
            keys_of(events),
            times,
            watermark[:-1],
            closed[:-1],
            objective.cast(pl.Int64).fill_null(0).to_numpy(),
        )
        outcome = np.where(kind == code.BROKEN, code.MALFORMED, code.IGNORED).astype(np.int8)
        return cls(events, arrays, outcome, watermark, int(latest[-1]))


def _kinds(events: pl.DataFrame) -> np.ndarray:
    kind = np.full(events.height, code.BROKEN, np.int8)
    kind[(events["event"] == "exposure").fill_null(False).to_numpy()] = code.EXPOSURE
    fed = (events["event"] == "feedback").fill_null(False).to_numpy()
    kind[fed] = code.FEEDBACK
    kind[fed & (events["value"] == 0).fill_null(False).to_numpy()] = code.ZERO
    if "fault" in events.columns:
        kind[events["fault"].is_not_null().to_numpy()] = code.BROKEN
    return kind
