"""Marks: what happened to versions and to upstream models, on a chart over time."""

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from harmonrank.reports.plots import MUTED, PALETTE, hover_text, scatter, upright
from harmonrank.reports.stream._history import StreamHistory

if TYPE_CHECKING:
    from harmonrank.streaming.loop_events import Publication

KINDS = {
    "published": (PALETTE[0], "circle", 7, "●"),
    "recalibrated": (PALETTE[3], "diamond", 11, "◆"),
    "refused": (PALETTE[5], "x", 9, "✕"),
}
"""What can come of a version: colour, symbol and size of its mark, and its sign in a text."""

WHEN = "%{x|%Y-%m-%d %H:%M}"
"""A time in a hover text."""

_MOST_NAMED = 8
_MOST_WORDS = 110


def milliseconds(time: datetime) -> int:
    """Return a time as an axis of dates takes it, which for the axis is in UTC."""
    return round(time.timestamp() * 1000)


def shown_time(time: datetime) -> str:
    """Return a time as tables show it, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M" if time.second == 0 else "%Y-%m-%d %H:%M:%S")


def kind_of(version: "Publication") -> str:
    """Return what came of a version."""
    if version.refused is not None:
        return "refused"
    return "recalibrated" if version.recalibrated else "published"


def line_marks(
    history: StreamHistory,
    times: Sequence[datetime],
    values: Sequence[float],
    kinds: Sequence[str] = tuple(KINDS),
) -> list[dict[str, Any]]:
    """Return marks of versions on a line through some values; before it there is no place."""
    marks = []
    for kind in kinds:
        color, symbol, size, _ = KINDS[kind]
        spots = [
            (time, values[place - 1], version)
            for time, version in history.offers()
            if kind_of(version) == kind and (place := bisect_right(times, time)) > 0
        ]
        if spots:
            marks.append(
                scatter(
                    kind,
                    [milliseconds(time) for time, _, _ in spots],
                    [value for _, value, _ in spots],
                    f"{WHEN}<br>%{{text}}",
                    meta=kind,
                    text=[_words(version) for _, _, version in spots],
                    marker={"color": color, "symbol": symbol, "size": size},
                )
            )
    return marks


def _words(version: "Publication") -> str:
    told = f"version {version.version} {kind_of(version)}"
    if version.refused is None:
        return told
    reason = version.refused
    reason = reason if len(reason) <= _MOST_WORDS else f"{reason[:_MOST_WORDS]}…"
    return hover_text(f"{told}: {reason}")


def time_axis(history: StreamHistory) -> dict[str, Any]:
    """Return the axis that all charts of a page share, so that they can be compared."""
    ends = [milliseconds(end) for end in history.ends()]
    room = max((max(ends) - min(ends)) // 50, 60_000)
    span = [min(ends) - room, max(ends) + room]
    return {"title": "end of the interval (UTC)", "type": "date", "range": span}


def upright_lines(history: StreamHistory, *, named: bool = False) -> dict[str, Any]:
    """Return lines where upstream models were replaced, as parts of a layout."""
    changes = [(i.end, i.replaced) for i in history.intervals if i.replaced]
    shapes = [upright(milliseconds(end), dash="dot") for end, _ in changes]
    if not named or len(changes) > _MOST_NAMED:
        return {"shapes": shapes}
    middle = sum(time_axis(history)["range"]) / 2
    return {"shapes": shapes, "annotations": [_note(*change, middle) for change in changes]}


def _note(end: datetime, names: Sequence[str], middle: float) -> dict[str, Any]:
    """Return the words beside a line, on the side that has more room."""
    x = milliseconds(end)
    side, shift = ("left", 4) if x < middle else ("right", -4)
    place = {"x": x, "y": 1, "yref": "paper", "yanchor": "top", "xanchor": side, "xshift": shift}
    words = hover_text(f"{_listed(names)} replaced")
    return {**place, "showarrow": False, "text": words, "font": {"color": MUTED, "size": 11}}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 2 else f"{names[0]} and {len(names) - 1} more"
