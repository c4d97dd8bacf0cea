"""Charts of a frontier: two objectives at a time, every point numbered."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from harmonrank.evaluation.baseline import TODAY
from harmonrank.evaluation.frontier import Front, Frontier
from harmonrank.metrics import pareto_front
from harmonrank.reports.plots import ACCENT, INK, PALETTE, Plot, hover_text, line, plot, scatter
from harmonrank.support.table import table_of

_SIGNS = {"current": "diamond", "knee": "star", TODAY: "cross"}
Point: TypeAlias = tuple[float, float]
BEST, REACHED = "best possible", "reached"
"""The lines of a chart."""

_EXTREMES = ("most ", "least ")
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


def front_plots(
    frontier: Frontier,
    front: Front,
    what: str,
    key: str,
    most: int,
    more: Callable[[str, str], Iterable[Any]] = lambda *_: (),
) -> list[Plot]:
    """Return a chart per pair of objectives.

    Args:
        frontier: All points.
        front: The figures that are drawn.
        what: Their name.
        key: Begins the names of the charts.
        most: At most so many pairs.
        more: Returns what else is drawn of two objectives.
    """
    pairs = pairs_of(front, most, frontier.signs)
    return [_plot(frontier, front, what, key, list(pair), more) for pair in pairs]


def _plot(
    frontier: Frontier, front: Front, what: str, key: str, pair: list[int], more: Callable[..., Any]
) -> Plot:
    first, second = (frontier.names[m] for m in pair)
    listed = frontier.listed().items()
    named = {n: words for n, words in listed if words and not words.startswith(_EXTREMES)}
    others = [n for n in range(len(frontier.weights)) if n not in named]
    hover = f"{what} {hover_text(first)} %{{x:.4f}}<br>{what} {hover_text(second)} %{{y:.4f}}"
    figures, signs = front.figures[:, pair], frontier.signs[pair]
    data = [_edge(REACHED, figures, signs, {"color": ACCENT})]
    if front is frontier.decisive and frontier.best is not None:
        best = {"color": PALETTE[1], "dash": "dash"}
        data.insert(0, _edge(BEST, frontier.best.figures[:, pair], signs, best))
    data += [
        _points(frontier, figures, others, hover, **_dots(front.unbeaten[others])),
        _points(frontier, figures, list(named), hover, **_marks(list(named.values()))),
        *_today(front, pair, hover),
        *more(first, second),
    ]
    heads = ("point", f"{what} {first}", f"{what} {second}")
    rows = [(n, *figures[n].tolist()) for n in np.flatnonzero(front.unbeaten).tolist()]
    return plot(
        f"{key}-{first}-{second}",
        f"{first} against {second}",
        data,
        table_of(heads, rows, dict.fromkeys(heads[1:], ".4f")),
        x={"title": f"{what} of {frontier.title(first)}"},
        y={"title": f"{what} of {frontier.title(second)}"},
        height=380,
        wide=len(frontier.names) == 2,
        hovermode="closest",
    )


def _edge(name: str, figures: np.ndarray, signs: np.ndarray, look: dict[str, Any]) -> Any:
    """Return the outer edge of the points in these two objectives, which bends one way only."""
    points = (figures * signs)[pareto_front(figures * signs)]
    edge: list[Any] = []
    for x, y in points[np.argsort(points[:, 0], kind="stable")]:
        # A point below the line between its neighbours is no part of it.
        while len(edge) > 1 and _slope(edge[-2], (x, y)) >= _slope(edge[-2], edge[-1]):
            edge.pop()
        edge.append((x, y))
    x, y = (np.array(edge) * signs).T.tolist()
    return line(name, x, y, "%{x:.4f}, %{y:.4f}", look)


def _slope(one: Point, other: Point) -> float:
    return (other[1] - one[1]) / max(other[0] - one[0], 1e-300)


def _points(
    frontier: Frontier, figures: np.ndarray, numbers: list[int], hover: str, **look: Any
) -> dict[str, Any]:
    x, y = figures[numbers].T.tolist()
    weights = [
        ", ".join(f"{n} {w:.2f}" for n, w in zip(frontier.names, row, strict=True) if w)
        for row in frontier.weights[numbers].tolist()
    ]
    look |= {"ids": list(map(str, numbers)), "customdata": weights, "selected": _PICKED}
    said = f"point %{{id}}<br>{hover}<br>weights: %{{customdata}}"
    return scatter("points", x, y, said, **look)


def _today(front: Front, pair: list[int], hover: str) -> Iterator[dict[str, Any]]:
    """Yield a mark where what ranks today stands, which is no point of the fit."""
    if front.today is not None:
        x, y = front.today[pair].tolist()
        yield scatter(TODAY, [x], [y], f"{TODAY}<br>{hover}", **_marks([TODAY]))


def _dots(unbeaten: np.ndarray) -> dict[str, Any]:
    marker = {
        "size": [7 if u else 5 for u in unbeaten],
        "symbol": ["circle" if u else "circle-open" for u in unbeaten],
        "color": ACCENT,
        "opacity": 0.65,
    }
    return {"marker": marker, "unselected": {"marker": {"opacity": 0.3}}}


def _marks(names: Sequence[str]) -> dict[str, Any]:
    """Return the look of points that have a name, with it above them."""
    symbols = [_SIGNS.get(words.split(", ")[0], "square") for words in names]
    edge = {"color": INK, "width": 1}
    return {
        "mode": "markers+text",
        "text": list(map(hover_text, names)),
        "textposition": "top center",
        "textfont": {**_NAMES, "size": 12},
        "marker": {"size": 12, "symbol": symbols, "color": PALETTE[1], "line": edge},
        "unselected": {"marker": {"opacity": 0.8}, "textfont": _NAMES},
    }
