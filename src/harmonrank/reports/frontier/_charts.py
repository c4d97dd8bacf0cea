"""Charts of a frontier: two objectives at a time, every point numbered."""

__all__ = ["front_plots", "pairs_of"]

from itertools import combinations
from typing import Any

import numpy as np

from harmonrank.evaluation.frontier import Front, Frontier
from harmonrank.reports.plots import ACCENT, INK, PALETTE, Plot, hover_text, plot, scatter
from harmonrank.support.table import table_of

_HEIGHT = 380

Point = tuple[float, float]
_SIGNS = {"current": "diamond", "knee": "star"}
_NAMES = {"color": INK}
_PICKED = {"marker": {"size": 15, "color": PALETTE[3]}}


def pairs_of(front: Front, most: int, signs: np.ndarray | float = 1.0) -> list[tuple[int, int]]:
    """Return the pairs of objectives that the front trades against each other most."""
    known = [m for m, column in enumerate(front.figures.T) if np.isfinite(column).all()]
    figures = front.figures[front.unbeaten] * signs

    def agreement(pair: tuple[int, int]) -> float:
        one, other = (figures[:, m] - figures[:, m].mean() for m in pair)
        size = float(np.linalg.norm(one) * np.linalg.norm(other))
        return float(one @ other) / size if size > 0 else 1.0

    return sorted(combinations(known, 2), key=agreement)[:most]


def front_plots(frontier: Frontier, front: Front, what: str, key: str, most: int) -> list[Plot]:
    """Return a chart per pair of objectives."""
    return [
        _plot(frontier, front, what, key, *pair) for pair in pairs_of(front, most, frontier.signs)
    ]


def _plot(frontier: Frontier, front: Front, what: str, key: str, a: int, b: int) -> Plot:
    first, second = frontier.names[a], frontier.names[b]
    named = frontier.listed()
    marks = {n: w for n, w in named.items() if w and not w.startswith(("most ", "least "))}
    others = [n for n in range(len(frontier.weights)) if n not in marks]
    data: list[dict[str, Any]] = []
    if front is frontier.auc and frontier.best is not None:
        line = {"color": PALETTE[1], "dash": "dash", "width": 2}
        data.append(_edge("best possible", frontier.best, frontier.signs, a, b, line))
    line = {"color": ACCENT, "width": 2}
    data.append(_edge("reached", front, frontier.signs, a, b, line))
    data += [
        _dots(frontier, front, others, what, a, b),
        _marked(frontier, front, marks, what, a, b),
    ]
    unbeaten = np.flatnonzero(front.unbeaten).tolist()
    rows = [(n, *(float(front.figures[n, m]) for m in (a, b))) for n in unbeaten]
    heads = ("point", f"{what} {first}", f"{what} {second}")
    return plot(
        f"{key}-{first}-{second}",
        f"{first} against {second}",
        data,
        table_of(heads, rows, dict.fromkeys(heads[1:], ".4f")),
        x={"title": f"{what} of {frontier.title(first)}"},
        y={"title": f"{what} of {frontier.title(second)}"},
        height=_HEIGHT,
        wide=len(frontier.names) == 2,
        showlegend=False,
        hovermode="closest",
    )


def _edge(
    name: str, front: Front, signs: np.ndarray, a: int, b: int, line: dict[str, Any]
) -> dict[str, Any]:
    """Return the outer edge of a front in two objectives, which bends one way only."""
    turn = signs[[a, b]]
    points = front.figures[:, [a, b]] * turn
    edge: list[tuple[float, float]] = []
    for x, y in points[np.lexsort((points[:, 1], points[:, 0]))[::-1]].tolist():
        if edge and y <= edge[-1][1]:
            continue
        while len(edge) > 1 and _inside(edge[-2], edge[-1], (x, y)):
            edge.pop()
        edge.append((x, y))
    hover = f"{name}<br>%{{x:.4f}}, %{{y:.4f}}"
    xs, ys = [x * turn[0] for x, _ in edge], [y * turn[1] for _, y in edge]
    return scatter(name, xs, ys, hover, "lines", line=line)


def _inside(last: Point, middle: Point, new: Point) -> bool:
    """Tell whether a corner of the edge lies below the line between its neighbours."""
    (x0, y0), (x1, y1), (x2, y2) = last, middle, new
    return (x1 - x0) * (y2 - y0) - (y1 - y0) * (x2 - x0) <= 0


def _dots(
    frontier: Frontier, front: Front, numbers: list[int], what: str, a: int, b: int
) -> dict[str, Any]:
    unbeaten = front.unbeaten[numbers]
    return _points(
        frontier,
        front,
        numbers,
        (what, a, b),
        "points",
        marker={
            "size": [7 if u else 5 for u in unbeaten],
            "symbol": ["circle" if u else "circle-open" for u in unbeaten],
            "color": ACCENT,
            "opacity": 0.65,
        },
    )


def _marked(
    frontier: Frontier, front: Front, marks: dict[int, str], what: str, a: int, b: int
) -> dict[str, Any]:
    """Return the points that have a name, with it beside them."""
    signs = [_SIGNS.get(words.split(", ")[0], "square") for words in marks.values()]
    return _points(
        frontier,
        front,
        list(marks),
        (what, a, b),
        "named points",
        mode="markers+text",
        text=[hover_text(words) for words in marks.values()],
        textposition="top center",
        textfont={**_NAMES, "size": 12},
        marker={
            "size": 12,
            "symbol": signs,
            "color": PALETTE[1],
            "line": {"color": INK, "width": 1},
        },
    )


def _points(
    frontier: Frontier,
    front: Front,
    numbers: list[int],
    axes: tuple[str, int, int],
    name: str,
    mode: str = "markers",
    **look: Any,
) -> dict[str, Any]:
    what, a, b = axes
    first, second = hover_text(frontier.names[a]), hover_text(frontier.names[b])
    figures = front.figures[numbers]
    return scatter(
        name,
        figures[:, a].tolist(),
        figures[:, b].tolist(),
        f"point %{{id}}<br>{what} {first} %{{x:.4f}}<br>{what} {second} %{{y:.4f}}",
        mode,
        ids=[str(number) for number in numbers],
        selected=_PICKED,
        unselected={"marker": {"opacity": 0.8 if "text" in look else 0.3}, "textfont": _NAMES},
        **look,
    )
