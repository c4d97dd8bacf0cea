"""Aside: events that do not count, each with the reason, kept once."""

__all__ = ["REASONS", "Aside", "AsidePart"]

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from harmonrank.streaming.join.arrays import (
    DUPLICATE_EXPOSURE,
    DUPLICATE_FEEDBACK,
    LATE_INTERVAL,
    LATE_WINDOW,
    MALFORMED,
    TOO_EARLY,
    UNMATCHED,
)
from harmonrank.streaming.sources.event_columns import kind_of
from harmonrank.streaming.sources.events import EventForm

REASONS = ("late", "duplicate", "unmatched", "malformed")
"""Why an event is set aside."""

_WHY = {
    LATE_INTERVAL: ("late", "its interval had closed"),
    LATE_WINDOW: ("late", "its waiting window had closed"),
    TOO_EARLY: ("late", "it is dated before its exposure"),
    DUPLICATE_EXPOSURE: ("duplicate", "the exposure was there already"),
    DUPLICATE_FEEDBACK: ("duplicate", "the feedback was there already"),
    UNMATCHED: ("unmatched", "no exposure came"),
    MALFORMED: ("malformed", ""),
}
_ORDER = "\0order"


class AsidePart(NamedTuple):
    """Events that are set aside.

    Attributes:
        events: In the canonical frame, or without columns that do not apply.
        outcomes: What became of each, as the kernels call it.
        order: The place in the stream at which that was clear.
    """

    events: pl.DataFrame
    outcomes: np.ndarray
    order: np.ndarray


class Aside:
    """Gathers what is set aside until somebody takes it."""

    def __init__(self, form: EventForm) -> None:
        columns = [name for name in form.types if name != "fault"]
        self._empty = pl.DataFrame(
            schema={"reason": pl.String, "detail": pl.String}
            | {name: form.types[name] for name in columns}
        )
        self._context = form.context
        self._frames: list[pl.DataFrame] = []

    def learn(self, types: Mapping[str, pl.DataType]) -> None:
        """Take the types of events: a context column has none before its first value."""
        known = {
            name: types[name]
            for name, held in self._empty.schema.items()
            if held == pl.Null and types.get(name, held) != pl.Null
        }
        if known:
            self._empty = self._empty.with_columns(
                pl.lit(None, t).alias(n) for n, t in known.items()
            )

    def kinds(self) -> dict[str, str]:
        """Return what context columns hold, as far as it is known."""
        found = {name: kind_of(self._empty.schema[name]) for name in self._context}
        return {name: kind for name, kind in found.items() if kind is not None}

    def put(self, *parts: AsidePart) -> dict[str, int]:
        """Add events, in order; return how many there are for each reason."""
        frames = [_with_reason(part) for part in parts if part.events.height]
        if not frames:
            return {}
        found = pl.concat(frames, how="diagonal_relaxed").sort(_ORDER, maintain_order=True)
        self.put_back(found.drop(_ORDER))
        return dict(found["reason"].value_counts().iter_rows())

    def put_back(self, frame: pl.DataFrame) -> None:
        """Add what was taken, and not kept."""
        self._frames.append(frame)

    def take(self) -> pl.DataFrame:
        """Return what was added since the last time."""
        frames, self._frames = [self._empty, *self._frames], []
        return pl.concat(frames, how="diagonal_relaxed").select(self._empty.columns)


def _with_reason(part: AsidePart) -> pl.DataFrame:
    why = [_WHY[code] for code in part.outcomes.tolist()]
    reason, detail = (pl.Series([pair[i] for pair in why], dtype=pl.String) for i in (0, 1))
    events = part.events
    if "fault" in events.columns:
        detail = detail.zip_with(detail != "", events["fault"])
        events = events.drop("fault")
    return events.with_columns(
        reason.alias("reason"), detail.alias("detail"), pl.Series(_ORDER, part.order)
    )
