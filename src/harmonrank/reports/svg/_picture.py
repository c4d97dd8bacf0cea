"""Picture: a chart with its axes, grid and legend as one SVG element."""

__all__ = ["svg"]

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

from harmonrank.reports.plots import Plot
from harmonrank.reports.svg._axis import Axis, axis_of
from harmonrank.reports.svg._marks import bases, marks, number, paint, stroke, write

_WIDTH = 420
_LETTER = 6.8
_LINE = 18
_EDGE = 14
_GRID = {"color": "--line", "width": 1}


def svg(plot: Plot, hidden: Collection[str] = ()) -> str:
    """Return the chart as SVG in the colours of the page's theme; all charts are as wide.

    It draws what the page's own charts need of Plotly: scatters, bars to the right, heatmaps,
    straight shapes and annotations. Traces whose `meta` is hidden are there, but not shown.
    """
    data = _stacked(plot.data) if plot.layout.get("barmode") == "stack" else plot.data
    legend = _legend(data) if plot.layout.get("showlegend") else []
    said = [_EDGE] * any(note.get("yanchor") == "bottom" for note in _notes(plot))
    top = _EDGE + sum(said) + _LINE * (1 + max((row for row, *_ in legend), default=-1))
    x, y = _axes(plot, data, top)
    box = (x.pixels[0], y.pixels[1], x.pixels[1] - x.pixels[0], y.pixels[0] - y.pixels[1])
    place = " ".join(map(number, box))
    area = dict(zip(("x", "y", "width", "height"), map(number, box), strict=True))
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {plot.height}" role="img" aria-label="{escape(plot.title)}">',
        *(_entry(*entry) for entry in legend),
        _frame(plot, x, y),
        # What lies beyond the axes is cut off by an inner element of the same units.
        f'<svg viewBox="{place}" {" ".join(f"{k}={v!r}" for k, v in area.items())}>',
        *(_shape(shape, x, y) for shape in plot.layout.get("shapes", ())),
        *(_group(trace, marks(trace, x, y), hidden) for trace in data),
        "</svg>",
        *(_note(note, x, y) for note in _notes(plot)),
        "</svg>",
    ]
    return "".join(parts)


def _notes(plot: Plot) -> Sequence[Mapping[str, Any]]:
    notes: Sequence[Mapping[str, Any]] = plot.layout.get("annotations", ())
    return notes


def _stacked(data: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Let every bar begin where the one before it ends."""
    ends, found = [0.0] * len(data[0]["x"]), []
    for trace in data:
        found.append({**trace, "base": ends})
        ends = [end + length for end, length in zip(ends, trace["x"], strict=True)]
    return found


def _axes(plot: Plot, data: Sequence[Mapping[str, Any]], top: float) -> tuple[Axis, Axis]:
    """Return both axes, with room for the texts of the one at the other."""
    options, values = (plot.layout["xaxis"], plot.layout["yaxis"]), _values(plot, data)
    tilted = "tickangle" in options[0]
    named = axis_of(options[0], values[0], (0, _WIDTH)).ticks
    below = 0.6 * _LETTER * max(len(text) for _, text in named) if tilted else 0
    bottom = plot.height - 26 - below - _LINE * bool(options[0]["title"]["text"])
    y = axis_of(options[1], values[1], (bottom, top))
    left = 10 + _LETTER * max((len(text) for _, text in y.ticks), default=0)
    left += _LINE * bool(options[1]["title"]["text"])
    return axis_of(options[0], values[0], (left, _WIDTH - _EDGE)), y


def _values(plot: Plot, data: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Return all that must have a place on each axis."""
    found: tuple[list[Any], list[Any]] = ([], [])
    for trace in data:
        found[1].extend(trace["y"])
        if trace["type"] == "bar":
            found[0].extend(bases(trace))
            found[0].extend(a + b for a, b in zip(bases(trace), trace["x"], strict=True))
        else:
            found[0].extend(trace["x"])
        for axis, name in enumerate("xy"):
            error, middles = trace.get(f"error_{name}"), trace[name]
            if error and trace["type"] != "bar":
                for sign, key in ((1, "array"), (-1, "arrayminus")):
                    reach = error.get(key, error["array"])
                    pairs = zip(middles, reach, strict=True)
                    found[axis].extend(m + sign * r for m, r in pairs if m is not None)
    for shape in plot.layout.get("shapes", ()):
        for axis, name in enumerate("xy"):
            if shape.get(f"{name}ref") != "paper":
                found[axis].extend([shape[f"{name}0"], shape[f"{name}1"]])
    return found


def _frame(plot: Plot, x: Axis, y: Axis) -> str:
    """Return grid, ticks and titles."""
    options = plot.layout["xaxis"], plot.layout["yaxis"]
    (left, right), (bottom, top) = x.pixels, y.pixels
    parts = []
    for place, text in x.ticks:
        at = x.pixel(place)
        if options[0].get("showgrid", True):
            parts.append(_line(at, bottom, at, top, _GRID))
        if "tickangle" in options[0]:
            turn = f"rotate({options[0]['tickangle']} {number(at)} {number(bottom + 10)})"
            parts.append(f'<g transform="{turn}">{write(at + 4, bottom + 10, text, "end")}</g>')
        else:
            parts.append(write(at, bottom + 13, text))
    for place, text in y.ticks:
        at = y.pixel(place)
        if options[1].get("showgrid", True):
            parts.append(_line(left, at, right, at, _GRID))
        parts.append(write(left - 6, at, text, "end"))
    titles = [each["title"]["text"] for each in options]
    if titles[0]:
        parts.append(write((left + right) / 2, plot.height - 10, titles[0]))
    if titles[1]:
        middle = (bottom + top) / 2
        turned = write(8, middle, titles[1])
        parts.append(f'<g transform="rotate(-90 8 {number(middle)})">{turned}</g>')
    return "".join(parts)


def _line(x0: float, y0: float, x1: float, y1: float, line: Mapping[str, Any]) -> str:
    way = f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}"
    return f'<path d="{way}" style="{stroke(line)}"/>'


def _at(value: Any, reference: str | None, axis: Axis) -> float:
    """Return the pixel of a value of the axis, or of a share of its length."""
    if reference == "paper":
        start, end = axis.pixels
        return start + float(value) * (end - start)
    return axis.at(value) or 0.0


def _shape(shape: Mapping[str, Any], x: Axis, y: Axis) -> str:
    ends = [(_at(shape[f"x{i}"], shape.get("xref"), x), _at(shape[f"y{i}"], shape.get("yref"), y))
            for i in (0, 1)]  # fmt: skip
    return _line(*ends[0], *ends[1], shape["line"])


def _note(note: Mapping[str, Any], x: Axis, y: Axis) -> str:
    at = _at(note["x"], note.get("xref"), x), _at(note["y"], note.get("yref"), y)
    up = -9 if note.get("yanchor") == "bottom" else 0
    inside = note.get("yref") == "paper" and not up
    half = _LETTER * len(note["text"]) / 2
    # A text around its point stays within the picture.
    middle = min(max(at[0], half), _WIDTH - half)
    color = paint(note.get("font", {}).get("color", "--text"))
    anchor, left = ("start", at[0] + 2) if note.get("xref") == "paper" else ("middle", middle)
    return write(left, at[1] + up - 8 * inside, note["text"], anchor, f"fill:{color}")


def _group(trace: Mapping[str, Any], drawn: str, hidden: Collection[str]) -> str:
    name = trace.get("meta")
    off = " class=off" * (name in hidden)
    return f"<g{off}>{drawn}</g>" if name is None else (
        f'<g data-trace="{escape(name)}"{off}>{drawn}</g>'
    )  # fmt: skip


def _legend(data: Sequence[Mapping[str, Any]]) -> list[tuple[int, float, Mapping[str, Any]]]:
    """Return row, place and trace of every entry."""
    found, row, left = [], 0, float(_EDGE)
    for trace in data:
        wide = 34 + _LETTER * len(trace.get("name", ""))
        if left + wide > _WIDTH and left > _EDGE:
            row, left = row + 1, float(_EDGE)
        if "name" in trace:
            found.append((row, left, trace))
            left += wide
    return found


def _entry(row: int, left: float, trace: Mapping[str, Any]) -> str:
    middle = _EDGE + _LINE * row
    ends = Axis("linear", (), (0, 1), (left, left + 20), ())
    level = Axis("linear", (), (0, 1), (middle, middle - 1), ())
    lines = "lines" in trace.get("mode", "lines")
    sample = {**trace, "x": [0, 0.5, 1] if lines else [0.5], "y": [0, 0, 0] if lines else [0]}
    for key in ("error_x", "error_y", "text", "fill"):
        sample.pop(key, None)
    sample["mode"] = str(trace.get("mode", "lines")).replace("+text", "")
    return marks(sample, ends, level) + write(left + 26, middle, trace["name"], "start")
