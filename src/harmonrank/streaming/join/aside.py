"""Aside: events that do not count, each with the reason, kept once."""

__all__ = ["REASONS", "Aside", "AsidePart", "doubts"]

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from harmonrank.streaming.join import kernels as code
from harmonrank.streaming.sources.events import EventForm

REASONS = ("late", "duplicate", "unmatched", "malformed")
"""Why an event is set aside."""

_WHY = {
    code.LATE_INTERVAL: ("late", "its interval had closed"),
    code.LATE_WINDOW: ("late", "its waiting window had closed"),
    code.TOO_EARLY: ("late", "it is dated before its exposure"),
    code.DUPLICATE_EXPOSURE: ("duplicate", "the exposure was there already"),
    code.DUPLICATE_FEEDBACK: ("duplicate", "the feedback was there already"),
    code.UNMATCHED: ("unmatched", "no exposure came"),
    code.MALFORMED: ("malformed", ""),
}
_DOUBTS = {
    "late": ": the watermark had passed them, as when a clock goes backwards",
    "duplicate": ": they were there before, as when a source sends them twice",
    "unmatched": ": feedback of which no exposure came",
    "malformed": "; the column `detail` of the files in the state's folder `aside` says why",
}
_ORDER = "\0order"


class AsidePart(NamedTuple):
    """Events that are set aside.

    Attributes:
        events: In the canonical frame, or without columns that do not apply.
        outcomes: What became of each, as the kernels call it.
        order: The number of the event at which that was clear.
    """

    events: pl.DataFrame
    outcomes: np.ndarray
    order: np.ndarray


class Aside:
    """Gathers what is set aside until somebody takes it."""

    def __init__(self, form: EventForm) -> None:
        types = {"reason": pl.String(), "detail": pl.String(), **form.types}
        # A context column has no type as long as none of its values has been seen.
        self._empty = pl.DataFrame(schema=types).drop("fault")
        self._frames: list[pl.DataFrame] = []

    def put(self, *parts: AsidePart) -> dict[str, int]:
        """Add events, in order; return how many there are for each reason."""
        frames = [_with_reason(part) for part in parts if part.events.height]
        if not frames:
            return {}
        added = pl.concat(frames, how="diagonal_relaxed").sort(_ORDER, maintain_order=True)
        self._frames.append(added.drop(_ORDER))
        return dict(added["reason"].value_counts().iter_rows())

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


def doubts(before: Mapping[str, int], now: Mapping[str, int], events: int) -> Iterator[str]:
    """Yield what a person should know if most events of a chunk count for nothing.

    Args:
        before: What was set aside before this chunk, by reason.
        now: The same after it.
        events: Of the chunk.
    """
    for reason, total in now.items():
        count = total - before.get(reason, 0)
        if 2 * count > events:
            yield f"{count:,} of {events:,} events were set aside as {reason}{_DOUBTS[reason]}."
