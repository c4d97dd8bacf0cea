"""Marks: the lines, dots, bars and cells of a chart as SVG elements."""

__all__ = ["bases", "marks", "number", "paint", "stroke", "write"]

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from harmonrank.reports.svg._axis import Axis

Point = tuple[float, float]

_DASHES = {"dash": "6 4", "dot": "2 3"}
_BAR = 0.72
_SCALES = {"--scale-diverging": ("#0077BB", "#EE7733"), "--scale-sequential": ("#0077BB",) * 2}


def marks(trace: Mapping[str, Any], x: Axis, y: Axis) -> str:
    """Return what one of Plotly's traces draws: a scatter, bars to the right, or a heatmap."""
    draw: Mapping[str, Callable[[Mapping[str, Any], Axis, Axis], Iterator[str]]]
    draw = {"scatter": _scatter, "bar": _bars, "heatmap": _cells}
    return "".join(draw[trace["type"]](trace, x, y))


def number(value: float) -> str:
    """Return a length with the digits that can be seen.

    >>> number(12.0), number(0.26)
    ('12', '0.3')
    """
    return f"{value:.1f}".removesuffix(".0")


def paint(color: str) -> str:
    """Return a colour; a name that starts with -- is one of the page's theme.

    >>> paint("--ink"), paint("#0077BB")
    ('var(--ink)', '#0077BB')
    """
    return f"var({color})" if color.startswith("--") else color


def stroke(line: Mapping[str, Any], color: str = "--ink") -> str:
    """Return the style of a line."""
    dash = _DASHES.get(line.get("dash", ""))
    return (
        f"fill:none;stroke:{paint(line.get('color', color))};stroke-width:{line.get('width', 2)}"
        + (f";stroke-dasharray:{dash}" if dash else "")
    )


def write(x: float, y: float, text: str, anchor: str = "middle", style: str = "") -> str:
    """Return a text whose middle is at the height y."""
    more = f' style="{style}"' if style else ""
    place = f'x="{number(x)}" y="{number(y)}" dy=".35em" text-anchor="{anchor}"'
    return f"<text {place}{more}>{escape(text)}</text>"


def _path(points: Sequence[Point], style: str) -> str:
    if not points:
        return ""
    way = "L".join(f"{number(a)} {number(b)}" for a, b in points)
    return f'<path d="M{way}" style="{style}"/>'


def _scatter(trace: Mapping[str, Any], x: Axis, y: Axis) -> Iterator[str]:
    points = [(x.at(a), y.at(b)) for a, b in zip(trace["x"], trace["y"], strict=True)]
    mode, line = trace.get("mode", "lines"), trace.get("line", {})
    for run in _runs(points) if "lines" in mode else ():
        way = _steps(run) if line.get("shape") == "hvh" else run
        if trace.get("fill") == "tozeroy":
            ground = y.at(0) or 0.0
            around = [(way[0][0], ground), *way, (way[-1][0], ground)]
            yield _path(around, f"stroke:none;fill:{paint(trace['fillcolor'])}")
        yield _path(way, stroke(line))
    yield from _errors(trace, x, y)
    for i, (a, b) in enumerate(points):
        if a is None or b is None:
            continue
        if "markers" in mode:
            yield _marker(trace, i, a, b)
        if "text" in mode:
            yield write(a + 10, b, trace["text"][i], "start")


def _runs(points: Sequence[tuple[float | None, float | None]]) -> Iterator[list[Point]]:
    """Yield the parts of a line between its gaps."""
    run: list[Point] = []
    for a, b in [*points, (None, None)]:
        if a is not None and b is not None:
            run.append((a, b))
        elif run:
            yield run
            run = []


def _steps(points: Sequence[Point]) -> list[Point]:
    """Return a line that changes its height half-way between two points."""
    way = [points[0]]
    for (a, b), (c, d) in pairwise(points):
        way += [((a + c) / 2, b), ((a + c) / 2, d)]
    return [*way, points[-1]]


def _marker(trace: Mapping[str, Any], i: int, a: float, b: float) -> str:
    marker = trace.get("marker", {})
    own = {key: value[i] if isinstance(value, list) else value for key, value in marker.items()}
    color = own.get("color", trace.get("line", {}).get("color", "--ink"))
    symbol, r = own.get("symbol", "circle"), own.get("size", 6) / 2
    line = stroke({"width": 1.5, **own.get("line", {}), "color": color})
    ways = {
        "line-ns-open": [[(a, b - r), (a, b + r)]],
        "x-thin-open": [[(a - r, b - r), (a + r, b + r)], [(a - r, b + r), (a + r, b - r)]],
        "diamond-open": [[(a, b - r), (a + r, b), (a, b + r), (a - r, b), (a, b - r)]],
    }
    if symbol in ways:
        return "".join(_path(way, line) for way in ways[symbol])
    style = line if symbol == "circle-open" else f"fill:{paint(color)}"
    return f'<circle cx="{number(a)}" cy="{number(b)}" r="{number(r)}" style="{style}"/>'


def _errors(trace: Mapping[str, Any], x: Axis, y: Axis) -> Iterator[str]:
    color = trace.get("line", {}).get("color", "--ink")
    for name, axis in (("error_x", x), ("error_y", y)):
        error = trace.get(name)
        if error is None:
            continue
        style = stroke({"width": error["thickness"], "color": error.get("color", color)})
        ends = error["array"], error.get("arrayminus", error["array"])
        tops = _tops(trace, "x" if name == "error_x" else "y")
        across = trace["y" if name == "error_x" else "x"]
        for top, other, up, down in zip(tops, across, *ends, strict=True):
            side = (y if name == "error_x" else x).at(other)
            if top is None or side is None:
                continue
            # A logarithm has no place for an interval that reaches 0: it goes to the edge.
            low, high = axis.at(top - down), axis.at(top + up)
            low, high = (axis.pixels[0] if end is None else end for end in (low, high))
            bar = [(low, side), (high, side)] if name == "error_x" else [(side, low), (side, high)]
            yield _path(bar, style)


def _tops(trace: Mapping[str, Any], name: str) -> list[float | None]:
    """Return where intervals are drawn: at the points, or at the ends of bars."""
    values: list[float | None] = trace[name]
    if trace["type"] != "bar":
        return values
    return [v + b for v, b in zip(trace["x"], bases(trace), strict=True)]


def bases(trace: Mapping[str, Any]) -> list[float]:
    """Return where each bar begins."""
    base = trace.get("base", 0.0)
    return base if isinstance(base, list) else [base] * len(trace["x"])


def _bars(trace: Mapping[str, Any], x: Axis, y: Axis) -> Iterator[str]:
    thick = _BAR * y.step
    colors = trace["marker"]["color"]
    for i, (length, base) in enumerate(zip(trace["x"], bases(trace), strict=True)):
        middle, ends = y.at(trace["y"][i]), sorted([x.at(base) or 0.0, x.at(base + length) or 0.0])
        color = colors[i] if isinstance(colors, list) else colors
        if middle is not None:
            yield _rect(ends[0], middle - thick / 2, ends[1] - ends[0], thick, paint(color))
    yield from _errors(trace, x, y)


def _cells(trace: Mapping[str, Any], x: Axis, y: Axis) -> Iterator[str]:
    """Yield cells whose colour grows with the value, over the colour of the panel."""
    above, below = _SCALES[trace["colorscale"]]
    form = trace["texttemplate"].removeprefix("%{z:").removesuffix("}")
    for name, row in zip(trace["y"], trace["z"], strict=True):
        for other, value in zip(trace["x"], row, strict=True):
            a, b = x.at(other), y.at(name)
            if value is None or value != value or a is None or b is None:
                continue
            share = min(abs(value) / trace["zmax"], 1.0)
            color = f"{above if value > 0 else below};fill-opacity:{share:.2f}"
            wide, high = x.step - 2, y.step - 2
            yield _rect(a - wide / 2, b - high / 2, wide, high, color)
            text = format(value, f"z{form}").replace("-", "−")
            yield write(a, b, text, style="fill:var(--ink)")


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect {place} style="fill:{fill}"/>'
