"""Charts of two objectives against each other as their weights move."""

__all__ = ["tradeoff_plots"]

from collections.abc import Iterable, Mapping
from typing import Any

from harmonrank.evaluation.baseline import TODAY
from harmonrank.fusion import Quality
from harmonrank.reports.facts import Facts
from harmonrank.reports.plots import ACCENT, INK, MUTED, PALETTE, Plot, hover_text, plot, scatter
from harmonrank.reports.tradeoffs import Tradeoff
from harmonrank.support.table import table_of

_EVERY = ".4f"
_HEIGHT = 380
# Of the plane of a chart beside another one, in pixels, and of a letter of a label.
_PLANE = (400, 270)
_LETTER = (6.6, 15)
_ROOM = 0.14
_LONGEST = 22
_NEAR, _NEXT_TO = 15, 8
# Where a name may stand, right of its mark and above it; the first place that covers nothing.
_WAYS = (
    *((9, 0), (-9, 0), (0, 15), (0, -15), (8, 14), (8, -14), (-8, 14), (-8, -14)),
    *((x * side, y) for x, y in ((14, -28), (14, 28), (30, -46), (30, 46)) for side in (-1, 1)),
    *((x * side, y) for x, y in ((40, -68), (40, 68), (60, -92)) for side in (-1, 1)),
)

Point = tuple[float, float]
Box = tuple[float, float, float, float]


def tradeoff_plots(facts: Facts) -> list[Plot]:
    """One panel per pair of objectives: the frontier by weights, and where the methods stand."""
    return [_tradeoff_plot(facts, tradeoff) for tradeoff in facts.tradeoffs]


def _tradeoff_plot(facts: Facts, t: Tradeoff) -> Plot:
    data = []
    if t.best:
        line = {"color": PALETTE[1], "dash": "dash", "width": 2}
        hover = "best possible<br>%{x:.4f}, %{y:.4f}"
        data.append(scatter("best possible", *_xy(t.best), hover, "lines", line=line))
    data += [_frontier(facts, t), _marks(facts, t)]
    ranges = _ranges([*t.best, *t.points, *t.others.values()])
    reach = f" of {t.best_volume:.4f} possible" if t.best_volume is not None else ""
    said = {
        "x": 0.02,
        "y": 0.01,
        "xref": "paper",
        "yref": "paper",
        "showarrow": False,
        "text": f"hypervolume {t.volume:.4f}{reach}",
    }
    weight = f"weight of {t.first}"
    areas = (f"AUC {t.first}", f"AUC {t.second}")
    rows = [
        (share, *point, "yes" if unbeaten else "no")
        for share, point, unbeaten in zip(t.shares, t.points, t.unbeaten, strict=True)
    ]
    return plot(
        f"frontier-{t.first}-{t.second}",
        f"{t.first} against {t.second}",
        data,
        table_of(
            (weight, *areas, "unbeaten"), rows, {weight: ".0%"} | dict.fromkeys(areas, _EVERY)
        ),
        x={"title": f"AUC of {t.first}", "range": ranges[0]},
        y={"title": f"AUC of {t.second}", "range": ranges[1]},
        height=_HEIGHT,
        showlegend=False,
        annotations=[said, *_names(facts, t, ranges)],
    )


def _frontier(facts: Facts, t: Tradeoff) -> dict[str, Any]:
    """Return the points of one fit as its weights move."""
    first, second = hover_text(t.first), hover_text(t.second)
    return scatter(
        f"{facts.focus}, re-weighted",
        *_xy(t.points),
        f"{hover_text(facts.focus or '')}<br>weights: {first} %{{customdata:.0f}} %, {second} the "
        f"rest<br>AUC {first} %{{x:.4f}}<br>AUC {second} %{{y:.4f}}",
        "lines+markers",
        customdata=[100 * s for s in t.shares],
        line={"color": ACCENT, "width": 2},
        marker={
            "size": [8 if u else 5 for u in t.unbeaten],
            "symbol": ["circle" if u else "circle-open" for u in t.unbeaten],
        },
    )


def _marks(facts: Facts, t: Tradeoff) -> dict[str, Any]:
    """Return a cross per method, where it stands as fitted for all objectives together."""
    told = []
    for name in t.others:
        counts = "ranks today" if name == TODAY else _counts(facts.board.qualities[name], t)
        told.append(f"{hover_text(name)}<br>{counts}")
    first, second = hover_text(t.first), hover_text(t.second)
    return scatter(
        "methods as fitted",
        *_xy(t.others.values()),
        f"%{{text}}<br>AUC {first} %{{x:.4f}}<br>AUC {second} %{{y:.4f}}",
        text=told,
        marker={"size": 9, "color": INK, "symbol": "x-thin-open", "line": {"width": 2}},
    )


def _counts(quality: Quality, t: Tradeoff) -> str:
    """Return what both objectives counted when rows were ranked."""
    what, counted = "weights", quality.weights
    if quality.value is not None and quality.value.ranked:
        what, counted = "values", quality.value.value
    shown = ", ".join(f"{hover_text(o)} {counted[o]:g}" for o in (t.first, t.second))
    return f"{what}: {shown}"


def _ranges(points: Iterable[Point]) -> tuple[list[float], list[float]]:
    """Return the ends of both axes, with room for names beside the outermost points."""
    ends = []
    for values in zip(*points, strict=True):
        low, high = min(values), max(values)
        room = _ROOM * ((high - low) or 0.01)
        ends.append([low - room, high + room])
    return ends[0], ends[1]


def _names(
    facts: Facts, t: Tradeoff, ranges: tuple[list[float], list[float]]
) -> list[dict[str, Any]]:
    """Name the marks and the ends of the frontier, as many as there is room for."""
    ends = {f"only {t.second}": t.points[0], f"only {t.first}": t.points[-1]}
    order = sorted(t.others, key=lambda name: name != facts.focus)
    labels: Mapping[str, Point] = {**{name: t.others[name] for name in order}, **ends}
    marks = [*t.points, *t.others.values()]
    taken = [_box(_pixel(point, ranges), 6, 8, (0, 0)) for point in marks]
    found = []
    for name, point in labels.items():
        text = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 6]}…{name[-5:]}"
        for way in _WAYS[: _NEXT_TO if name in ends else None]:
            box = _box(_pixel(point, ranges), _LETTER[0] * len(text), _LETTER[1], way)
            if _inside(box) and not any(_meet(box, other) for other in taken):
                taken.append(box)
                found.append(_label(text, point, way, ACCENT if name in ends else INK))
                break
    return found


def _label(text: str, point: Point, way: tuple[int, int], color: str) -> dict[str, Any]:
    """Return a name beside its mark, with a thin line where it is farther away."""
    right, up = way
    side = "center" if right == 0 else "left" if right > 0 else "right"
    look = {"x": point[0], "y": point[1], "text": hover_text(text), "xanchor": side}
    look["font"] = {"size": 11.5, "color": color}
    if abs(up) <= _NEAR:
        return look | {"showarrow": False, "xshift": right, "yshift": up}
    line = {"arrowhead": 0, "arrowwidth": 1, "arrowcolor": MUTED, "standoff": 5}
    return look | {"showarrow": True, "ax": right, "ay": -up, "yanchor": "middle"} | line


def _pixel(point: Point, ranges: tuple[list[float], list[float]]) -> Point:
    x, y = (
        size * (value - low) / (high - low)
        for value, (low, high), size in zip(point, ranges, _PLANE, strict=True)
    )
    return x, y


def _box(mark: Point, width: float, height: float, way: tuple[int, int]) -> Box:
    """Return the room of a label that is so far right of a mark and above it."""
    right, up = way
    x = mark[0] + right + (width / 2 if right > 0 else -width / 2 if right < 0 else 0)
    y = mark[1] + up
    return x - width / 2, x + width / 2, y - height / 2, y + height / 2


def _meet(one: Box, other: Box) -> bool:
    apart = one[1] < other[0] or other[1] < one[0] or one[3] < other[2] or other[3] < one[2]
    return not apart


def _inside(box: Box) -> bool:
    return box[0] >= 0 and box[1] <= _PLANE[0] and box[2] >= 0 and box[3] <= _PLANE[1]


def _xy(points: Iterable[Point]) -> tuple[list[float], list[float]]:
    pairs = list(points)
    return [x for x, _ in pairs], [y for _, y in pairs]
