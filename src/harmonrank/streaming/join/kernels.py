"""Join kernels: the walk over events, one after the other, and the tables of keys beneath it."""

__all__ = ["EventArrays", "HeldArrays", "Limits", "ShownArrays", "chain", "insert", "walk"]

from typing import NamedTuple

import numpy as np

from harmonrank.support.kernel import inline_kernel, kernel

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


@inline_kernel
def _find(slots: np.ndarray, base: int, keys: np.ndarray, lo: int, hi: int) -> int:
    """Return the slot of a key, or the empty one where it belongs."""
    mask = len(slots) - 1
    slot = lo & mask
    while slots[slot] >= 0:
        row = slots[slot] - base
        if keys[row, 0] == lo and keys[row, 1] == hi:
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def insert(shown: ShownArrays, numbers: np.ndarray) -> None:
    """Put exposures, whose keys are known to differ, into their table."""
    for number in numbers:
        row = number - shown.base
        lo, hi = shown.keys[row, 0], shown.keys[row, 1]
        shown.slots[_find(shown.slots, shown.base, shown.keys, lo, hi)] = number


@inline_kernel
def _link(held: HeldArrays, number: int) -> None:
    """Put feedback into its table, behind those of the same key that came before it."""
    row = number - held.base
    held.links[row, 0] = -1
    held.links[row, 1] = number
    slot = _find(held.slots, held.base, held.keys, held.keys[row, 0], held.keys[row, 1])
    if held.slots[slot] < 0:
        held.slots[slot] = number
    else:
        first = held.slots[slot] - held.base
        held.links[held.links[first, 1] - held.base, 0] = number
        held.links[first, 1] = number


@kernel
def chain(held: HeldArrays, numbers: np.ndarray) -> None:
    """Put held feedback, in order of arrival, into an empty table."""
    for number in numbers:
        _link(held, number)


@inline_kernel
def _judged(
    shown_at: int, labels: np.ndarray, time: int, before: int, objective: int, wait: int
) -> int:
    """Return what becomes of feedback on an exposure, and set its label if it counts."""
    if time < shown_at:
        return TOO_EARLY
    # Both must be in time: when it was given, and when it arrived.
    if time > shown_at + wait or before >= shown_at + wait:
        return LATE_WINDOW
    if labels[objective]:
        return DUPLICATE_FEEDBACK
    labels[objective] = 1
    return COUNTED


@kernel
def walk(
    events: EventArrays,
    waits: np.ndarray,
    shown: ShownArrays,
    following: int,
    held: HeldArrays,
    held_following: int,
    outcome: np.ndarray,
    settled: np.ndarray,
) -> int:
    """Take events one after the other; none of them but the last one closes an interval.

    Args:
        events: In the order in which they arrived.
        waits: How long after an exposure feedback on each objective counts.
        shown: Open exposures, with room for more.
        following: The number that the next exposure gets.
        held: Held feedback, with room for more.
        held_following: The number that the next held one gets.
        outcome: What became of each event; filled here.
        settled: (…, 2), held feedback whose exposure came, and the event that was it; filled here.

    Returns:
        How many rows of `settled` are filled.
    """
    count = 0
    for i in range(len(events.kind)):
        lo, hi, time = events.key[i, 0], events.key[i, 1], events.time[i]
        if events.kind[i] == EXPOSURE:
            if time < events.closed[i]:
                outcome[i] = LATE_INTERVAL
                continue
            slot = _find(shown.slots, shown.base, shown.keys, lo, hi)
            number = shown.slots[slot]
            # One whose interval has closed stays in the table until another takes its slot.
            if number >= 0 and shown.times[number - shown.base] >= events.closed[i]:
                outcome[i] = DUPLICATE_EXPOSURE
                continue
            outcome[i] = ACCEPTED
            shown.slots[slot] = following
            row = following - shown.base
            following += 1
            shown.keys[row, 0], shown.keys[row, 1], shown.times[row] = lo, hi, time
            shown.labels[row, :] = 0
            number = held.slots[_find(held.slots, held.base, held.keys, lo, hi)]
            while number >= 0:
                h = number - held.base
                if held.state[h] == WAITING:
                    given, before, what = held.facts[h, 0], held.facts[h, 1], held.facts[h, 2]
                    labels, wait = shown.labels[row], waits[what]
                    held.state[h] = _judged(time, labels, given, before, what, wait)
                    settled[count, 0], settled[count, 1] = number, i
                    count += 1
                number = held.links[h, 0]
        elif events.kind[i] == FEEDBACK:
            number = shown.slots[_find(shown.slots, shown.base, shown.keys, lo, hi)]
            what, row = events.objective[i], number - shown.base
            if number >= 0 and shown.times[row] >= events.closed[i]:
                labels, wait = shown.labels[row], waits[what]
                outcome[i] = _judged(shown.times[row], labels, time, events.before[i], what, wait)
            elif time < events.closed[i]:
                outcome[i] = LATE_INTERVAL
            else:
                outcome[i] = HELD
                h = held_following - held.base
                held.keys[h, 0], held.keys[h, 1], held.facts[h, 0] = lo, hi, time
                held.facts[h, 1], held.facts[h, 2] = events.before[i], what
                held.state[h] = WAITING
                _link(held, held_following)
                held_following += 1
    return count
