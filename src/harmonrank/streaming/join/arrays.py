"""Join arrays: what the kernels of the join read and write, and how they call what they find.

Exposures are numbered as they are accepted, feedback as it is held; what is known of number n is
in row n − base of their arrays. A key is 128 bits of a request and an item. A table of keys holds
numbers; it has open addresses with linear probing, and a power of two of slots, −1 where empty.
"""

__all__ = ["EventArrays", "HeldArrays", "Limits", "ShownArrays"]

from typing import NamedTuple

import numpy as np

EXPOSURE, FEEDBACK, ZERO, BROKEN = 0, 1, 2, 3
"""What an event is."""

IGNORED, ACCEPTED, COUNTED, HELD = 0, 1, 2, 3
LATE_INTERVAL, LATE_WINDOW, TOO_EARLY = 4, 5, 6
DUPLICATE_EXPOSURE, DUPLICATE_FEEDBACK, MALFORMED, UNMATCHED = 7, 8, 9, 10
"""What became of an event."""

WAITING = 0
"""The state of feedback that is held; later it is what became of it."""


NEVER = -(1 << 62)
"""A time before all others, from which any window may be taken."""


class EventArrays(NamedTuple):
    """Events, one row each.

    Attributes:
        kind: What each is.
        key: (events, 2), of its request and item.
        time: When it was.
        before: The watermark just before it arrived.
        closed: Intervals before this time were closed then.
        objective: Of feedback.
    """

    kind: np.ndarray
    key: np.ndarray
    time: np.ndarray
    before: np.ndarray
    closed: np.ndarray
    objective: np.ndarray


class ShownArrays(NamedTuple):
    """Open exposures.

    Attributes:
        slots: Their table.
        base: The number of the first row.
        keys: (rows, 2).
        times: When each was.
        labels: (rows, objectives), 0 or 1.
    """

    slots: np.ndarray
    base: int
    keys: np.ndarray
    times: np.ndarray
    labels: np.ndarray


class HeldArrays(NamedTuple):
    """Feedback that came before its exposure.

    Attributes:
        slots: Their table, of the first number of each key.
        base: The number of the first row.
        keys: (rows, 2).
        facts: (rows, 3): its time, the watermark before it, its objective.
        links: (rows, 2): the next number of the same key, or −1; in the first one's row the last.
        state: Waiting, or what became of it.
    """

    slots: np.ndarray
    base: int
    keys: np.ndarray
    facts: np.ndarray
    links: np.ndarray
    state: np.ndarray


class Limits(NamedTuple):
    """How long things wait, in microseconds.

    Attributes:
        waits: How long after an exposure feedback on each objective counts.
        every: Length of an interval.
        longest: The longest of the waits.
        lateness: How far the watermark stays behind the newest event.
    """

    waits: np.ndarray
    every: int
    longest: int
    lateness: int
