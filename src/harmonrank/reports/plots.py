"""Plot: one chart in Plotly's JSON form, with the numbers behind it as a table."""

__all__ = [
    "ACCENT",
    "DASHES",
    "INK",
    "LEGEND",
    "MUTED",
    "PALETTE",
    "Plot",
    "hover_text",
    "logit",
    "logit_axis",
    "plot",
    "scatter",
    "whiskers",
]

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any
from zlib import crc32

from harmonrank.support.table import Table

# Paul Tol's vibrant scheme: told apart by every kind of colour vision, on white and on black.
PALETTE = ("#0077BB", "#EE7733", "#009988", "#EE3377", "#33BBEE", "#CC3311", "#9A8FB8")
DASHES = ("solid", "dash", "dot")
# The page replaces these names by the colours of its theme, light or dark.
INK, MUTED, ACCENT = "--ink", "--muted", "--accent"
LEGEND = {"orientation": "h", "y": 1.04, "yanchor": "bottom", "x": 0}

_TICKS = (1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.999)
_ROOM = 0.15
_TICK_GAP = 0.14
_TITLE = 44


@dataclass(frozen=True)
class Plot:
    """One chart.

    Attributes:
        name: Its file name and its place in the page.
        wide: Takes the whole width of the page.
    """

    name: str
    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    height: int
    wide: bool
    table: Table


def plot(
    name: str,
    title: str,
    data: Sequence[Mapping[str, Any]],
    table: Table,
    *,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    height: int = 300,
    wide: bool = False,
    **layout: Any,
) -> Plot:
    """Return a chart with the axes that every chart of the page has."""
    axes = {"xaxis": _axis(x), "yaxis": _axis(y)}
    return Plot(
        _file_name(name), title, [dict(d) for d in data], axes | layout, height, wide, table
    )


def scatter(
    name: str,
    x: Sequence[Any],
    y: Sequence[Any],
    hover: str,
    mode: str = "markers",
    **look: Any,
) -> dict[str, Any]:
    """Return dots, a line or both; `hover` is what a pointer reads of a dot."""
    trace = {"type": "scatter", "mode": mode, "name": name, "x": x, "y": y}
    return trace | {"hovertemplate": f"{hover}<extra></extra>"} | look


def hover_text(name: str) -> str:
    """Return a name as a part of a hover text, where Plotly would take some signs for its own.

    >>> hover_text("a<b> %{x}")
    'a&lt;b> %\u200b{x}'
    """
    return name.replace("<", "&lt;").replace("%{", "%\u200b{")


def whiskers(
    values: Sequence[float], lows: Sequence[float], highs: Sequence[float], **look: Any
) -> dict[str, Any]:
    """Return the intervals around some values, as thin lines with ends."""
    return {
        "type": "data",
        "array": [high - value for value, high in zip(values, highs, strict=True)],
        "arrayminus": [value - low for value, low in zip(values, lows, strict=True)],
        "thickness": 1.6,
        "width": 4,
        **look,
    }


def _file_name(name: str) -> str:
    """Return a name that every disk takes, still unlike all others.

    >>> _file_name("auc-buy"), _file_name("auc-buy/now")
    ('auc-buy', 'auc-buy-now-c838f59b')
    """
    safe = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)
    return name if safe == name else f"{safe}-{crc32(name.encode()):08x}"


def _axis(options: Mapping[str, Any]) -> dict[str, Any]:
    axis = {"zeroline": False, "automargin": True, **options}
    axis["title"] = {"text": hover_text(_shortened(axis.get("title", ""))), "standoff": 8}
    return axis


def _shortened(title: str) -> str:
    """Return a title that fits beside its axis; a long name loses its middle."""
    return title if len(title) <= _TITLE else f"{title[: _TITLE - 9]}…{title[-8:]}"


def logit_axis(title: str, low: float, high: float) -> dict[str, Any]:
    """Return an axis of probabilities in even steps of the logit; values on it are logits.

    >>> logit_axis("score", 0.02, 0.4)["ticktext"]
    ['3 %', '10 %', '30 %']
    """
    ends = [logit(low), logit(high)]
    ticks: list[float] = []
    for p in _TICKS:
        apart = not ticks or logit(p) - logit(ticks[-1]) > _TICK_GAP * (ends[1] - ends[0])
        if low <= p <= high and apart:
            ticks.append(p)
    ticks = ticks or [low, high]
    room = _ROOM + 0.02 * (ends[1] - ends[0])
    return {
        "title": title,
        "tickvals": [logit(p) for p in ticks],
        "ticktext": [f"{100 * p:.3g} %" for p in ticks],
        "range": [ends[0] - room, ends[1] + room],
    }


def logit(p: float) -> float:
    """Return log(p/(1−p)), bounded where p is 0 or 1."""
    p = min(max(p, 1e-7), 1 - 1e-7)
    return log(p / (1 - p))
