"""Charts of made-again tables: dots with intervals, fronts, matrices."""

__all__ = ["charts"]

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from harmonrank.reports.figures import auc_bars, epoch_plots, heatmap
from harmonrank.reports.plots import (
    ACCENT,
    INK,
    LEGEND,
    MUTED,
    PALETTE,
    Plot,
    plot,
    scatter,
    upright,
    whiskers,
)
from harmonrank.support.table import Table, table_of
from harmonrank_lab.paper_tables import PaperTable, Row
from harmonrank_lab.paper_tables.report._text import number, upper

_ROW = 28
_BEST = "best possible"
# The paper's own speeds, of another machine, would leave no room for differences between ours.
_OWN_SCALE = ("rows/s", "ms")
_TITLES = {
    "AUC-sum": "AUC-sum (no unit)",
    "%": "per cent",
    "rows/s": "rows per second",
    "hypervolume": "hypervolume above chance (no unit)",
}
_OURS = "harmonrank (ours)"
_UNDRAWN = ("parameters", "FLOPs")


def charts(key: str, table: PaperTable) -> Iterator[Plot]:
    """Draw what a table has: matrices, or fronts, or its rows as dots."""
    for name, matrix in table.matrices.items():
        scale = "sequential" if name.startswith("attention") else "diverging"
        yield heatmap(table.objectives, f"{key}-{name}", upper(name), matrix, scale)
    for title, curves in table.curves.items():
        yield _fronts(f"{key}-{title}", title, curves)
    if not table.matrices and not table.curves:
        for (group, unit), rows in groupby(table.rows, key=lambda row: (row.group, row.unit)):
            drawn = [row for row in rows if row.ours is not None]
            if len(drawn) > 1 and unit not in _UNDRAWN:
                yield _dots(f"{key}-{group}-{unit}", f"{group}, {unit}", unit, drawn)
    if table.areas:
        yield from auc_bars(f"{key}-auc", _areas(table), _OURS)
    styles = {name: {"color": color} for name, color in zip(table.training, PALETTE, strict=False)}
    yield from epoch_plots(f"{key}-training", table.training, styles, showlegend=True)


def _areas(table: PaperTable) -> dict[str, dict[str, list[Any]]]:
    """Return AUCs by objective and way to fuse; without an interval both ends are the mean."""
    return {
        f"AUC of {objective}": {
            name: [found[index][0] if value is None else value for value in found[index]]
            for name, found in table.areas.items()
        }
        for index, objective in enumerate(table.objectives)
    }


def _dots(name: str, title: str, unit: str, rows: Sequence[Row]) -> Plot:
    """Draw each row's mean and interval, the paper's figure hollow, the best possible as a line."""
    best = next((row.ours for row in rows if row.name == _BEST), None)
    rows = [row for row in rows if row.name != _BEST]
    data = [_ours(rows, unit)]
    stated = [row for row in rows if row.paper is not None and unit not in _OWN_SCALE]
    if stated:
        data.append(_paper(stated))
    return plot(
        name,
        title,
        data,
        _numbers(rows, unit),
        x={"title": _TITLES.get(unit, unit)},
        y={"autorange": "reversed", "showgrid": False},
        height=150 + _ROW * len(rows),
        showlegend=bool(stated),
        legend={**LEGEND, "y": 1.12},
        **({} if best is None else _ceiling_line(best.mean)),
    )


def _ceiling_line(ceiling: float) -> dict[str, Any]:
    """Return a dashed line at the best possible, as parts of a layout."""
    ends = {"x": ceiling, "y": 1, "yref": "paper", "yanchor": "bottom", "xanchor": "center"}
    words = {"text": f"ceiling {ceiling:.4f}", "font": {"color": PALETTE[1]}, "showarrow": False}
    line = upright(ceiling, color=PALETTE[1], width=2, dash="dash")
    return {"shapes": [line], "annotations": [ends | words]}


def _ours(rows: Sequence[Row], unit: str) -> dict[str, Any]:
    found = [row.ours for row in rows if row.ours is not None]
    means = [each.mean for each in found]
    ends = (
        [m + sign * (e.reach or 0) for m, e in zip(means, found, strict=True)] for sign in (-1, 1)
    )
    return scatter(
        "here, 95 % interval",
        means,
        [row.name for row in rows],
        "%{y}<br>here %{text}",
        error_x=whiskers(means, *ends, color=MUTED),
        marker={"size": 10, "color": [ACCENT if "ours" in r.name else INK for r in rows]},
        text=[number(mean, unit) for mean in means],
    )


def _paper(rows: Sequence[Row]) -> dict[str, Any]:
    return scatter(
        "paper, on its own data",
        [row.paper for row in rows],
        [row.name for row in rows],
        "%{y}<br>paper %{text}",
        marker={"symbol": "diamond-open", "size": 10, "color": PALETTE[1], "line": {"width": 2}},
        text=[number(row.paper, row.unit) for row in rows],
    )


def _numbers(rows: Sequence[Row], unit: str) -> Table:
    shown = tuple(
        (row.name, number(row.paper, unit), number(row.ours.mean, unit))
        for row in rows
        if row.ours is not None
    )
    return table_of(("what", "paper", "here"), shown)


def _fronts(name: str, title: str, curves: Mapping[str, Sequence[Sequence[float]]]) -> Plot:
    """Draw both AUCs as the weights move, a line per method."""
    first, _, second = title.partition(" – ")
    styles = [
        {"color": color, "dash": dash, "width": 2}
        for color, dash in zip(PALETTE, ("solid", "solid", "solid", "dash"), strict=False)
    ]
    data, rows = [], []
    for style, (method, points) in zip(styles, curves.items(), strict=False):
        x, y = [point[0] for point in points], [point[1] for point in points]
        rows += [(method, a, b) for a, b in zip(x, y, strict=True)]
        data.append(
            scatter(
                method,
                x,
                y,
                f"{method}<br>{first} %{{x:.4f}}<br>{second} %{{y:.4f}}",
                "lines+markers",
                line=style,
                marker={"size": 7, "color": style["color"]},
            )
        )
    columns = ("method", f"AUC of {first}", f"AUC of {second}")
    return plot(
        name,
        title,
        data,
        table_of(columns, tuple(rows), dict.fromkeys(columns[1:], ".4f")),
        x={"title": f"AUC of {first}"},
        y={"title": f"AUC of {second}"},
        height=380,
        showlegend=True,
        legend=LEGEND,
    )
