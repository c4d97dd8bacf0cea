"""Plot: one chart in Plotly's JSON form with the numbers behind it, and what charts are made of."""

__all__ = [
    "ACCENT",
    "DASHES",
    "INK",
    "LEGEND",
    "MUTED",
    "PALETTE",
    "ROW",
    "ROWS",
    "Plot",
    "bars",
    "hover_text",
    "level",
    "line",
    "logit",
    "logit_axis",
    "plot",
    "scatter",
    "styles",
    "upright",
    "whiskers",
]

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from harmonrank.support import logistic
from harmonrank.support.table import Table

# Paul Tol's vibrant scheme: told apart by every kind of colour vision, on white and on black.
PALETTE = ("#0077BB", "#EE7733", "#009988", "#EE3377", "#33BBEE", "#CC3311", "#9A8FB8")
DASHES = ("solid", "dash", "dot")
# The page replaces these names by the colours of its theme, light or dark.
INK, MUTED, ACCENT = "--ink", "--muted", "--accent"
LEGEND = {"orientation": "h", "y": 1.04, "yanchor": "bottom", "x": 0}
ROW = 26
"""The height of a row of a chart with named rows, whose axis is `ROWS`."""
ROWS = {"autorange": "reversed", "type": "category", "showgrid": False}

_TICKS = (1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.999)
_ROOM = 0.15
_TICK_GAP = 0.14
_TITLE = 44
_SMALLEST = 1e-7


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

    @property
    def figure(self) -> dict[str, Any]:
        """What the page's script draws."""
        parts = {"data": self.data, "layout": self.layout}
        return {**parts, "height": self.height, "wide": self.wide}


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
    layout = {"xaxis": _axis(x), "yaxis": _axis(y), "showlegend": False, "legend": LEGEND, **layout}
    return Plot(_file_name(name), title, list(map(dict, data)), layout, height, wide, table)


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


def line(
    name: str,
    x: Sequence[Any],
    y: Sequence[Any],
    hover: str,
    style: Mapping[str, Any],
    mode: str = "lines",
    **look: Any,
) -> dict[str, Any]:
    """Return a line that the legend of its section shows and hides by its name."""
    said = f"{hover_text(name)}<br>{hover}"
    return scatter(name, x, y, said, mode, meta=name, line={"width": 2, **style}, **look)


def bars(
    name: str, labels: Sequence[str], values: Sequence[float], hover: str, **look: Any
) -> dict[str, Any]:
    """Return lying bars, one per label."""
    trace = {"type": "bar", "orientation": "h", "name": name, "x": values, "y": labels}
    return trace | {"hovertemplate": f"%{{y}}<br>{hover}<extra></extra>"} | look


def styles(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return a colour and a dash for each name, unlike those of its neighbours."""
    return {
        name: {"color": PALETTE[i % len(PALETTE)], "dash": DASHES[i // len(PALETTE) % len(DASHES)]}
        for i, name in enumerate(names)
    }


def upright(x: float, **look: Any) -> dict[str, Any]:
    """Return a line from the bottom to the top, as a shape of a layout."""
    look = {"color": MUTED, "width": 1.5, **look}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": look}


def level(y: float, dash: str = "dot") -> dict[str, Any]:
    """Return a line from side to side, as a shape of a layout."""
    look = {"color": MUTED, "width": 1, "dash": dash}
    return {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": y, "y1": y, "line": look}


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
    return float(logistic.logit(p, _SMALLEST))
