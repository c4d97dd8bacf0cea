"""The page of made-again tables, with charts: dots with intervals, fronts, matrices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from harmonrank.reports import Card, Run, Section, page, plots
from harmonrank.reports.figures import auc_bars, epoch_plots, heatmap
from harmonrank.reports.plots import LEGEND, PALETTE, Plot, plot, scatter
from harmonrank.support import Table, table_of
from harmonrank_lab.paper_tables import PaperTable, Row
from harmonrank_lab.paper_tables._table import FIGURES
from harmonrank_lab.paper_tables.report import _tables as tables_of
from harmonrank_lab.paper_tables.report._tables import counts, heading, number, upper

_ROW = 28
_BEST = "best possible"
# The paper's own speeds, of another machine, would leave no room for differences between ours.
_OWN_SCALE = ("rows/s", "ms")
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
            name: [areas[index][0] if value is None else value for value in areas[index]]
            for name, areas in table.areas.items()
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
        x={"title": FIGURES["units"].get(unit, unit)},
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
    line = plots.upright(ceiling, color=PALETTE[1], width=2, dash="dash")
    return {"shapes": [line], "annotations": [ends | words]}


def _ours(rows: Sequence[Row], unit: str) -> dict[str, Any]:
    estimates = [row.ours for row in rows if row.ours is not None]
    means = [each.mean for each in estimates]
    ends = ([each.mean + sign * (each.reach or 0) for each in estimates] for sign in (-1, 1))
    colors = [plots.ACCENT if "ours" in row.name else plots.INK for row in rows]
    return scatter(
        "here, 95 % interval", means, [row.name for row in rows], "%{y}<br>here %{text}",
        error_x=plots.whiskers(means, *ends, color=plots.MUTED),
        marker={"size": 10, "color": colors},
        text=[number(mean, unit) for mean in means],
    )  # fmt: skip


def _paper(rows: Sequence[Row]) -> dict[str, Any]:
    names, values = [row.name for row in rows], [row.paper for row in rows]
    look = {"symbol": "diamond-open", "size": 10, "color": PALETTE[1], "line": {"width": 2}}
    text = [number(row.paper, row.unit) for row in rows]
    what = "paper, on its own data"
    return scatter(what, values, names, "%{y}<br>paper %{text}", marker=look, text=text)


def _numbers(rows: Sequence[Row], unit: str) -> Table:
    means = [(row.name, row.paper, row.ours.mean) for row in rows if row.ours is not None]
    shown = [(name, *(number(value, unit) for value in both)) for name, *both in means]
    return table_of(("what", "paper", "here"), shown)


def _fronts(name: str, title: str, curves: Mapping[str, Sequence[Sequence[float]]]) -> Plot:
    """Draw both AUCs as the weights move, a line per method."""
    first, _, second = title.partition(" – ")
    looks = zip(PALETTE, ("solid", "solid", "solid", "dash"), strict=False)
    styles = [{"color": color, "dash": dash, "width": 2} for color, dash in looks]
    data, rows = [], []
    for style, (method, points) in zip(styles, curves.items(), strict=False):
        rows += [(method, *point) for point in points]
        told = f"{method}<br>{first} %{{x:.4f}}<br>{second} %{{y:.4f}}"
        mark = {"size": 7, "color": style["color"]}
        x, y = ([point[axis] for point in points] for axis in (0, 1))
        drawn = scatter(method, x, y, told, "lines+markers", line=style, marker=mark)
        data.append(drawn)
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


def reproduction_page(tables: Sequence[PaperTable], run: Run) -> str:
    """Return the page: a section per table with its numbers, verdicts and charts."""
    return page("The paper, made again", run, _cards(tables), reproduction_sections(tables))


def reproduction_sections(tables: Sequence[PaperTable]) -> list[Section]:
    """Return a section per table; a table made in two ways has two."""
    overview = (tables_of.overview_table(tables),)
    first = Section("verdicts", "Verdicts", tables_of.SUMMARY, tables=overview)
    keys = _keys([table.key for table in tables])
    return [first, *(_section(key, table) for key, table in zip(keys, tables, strict=True))]


def _keys(names: Sequence[str]) -> list[str]:
    """Return names unlike each other, to link to.

    >>> _keys(["main", "main", "skew"])
    ['main', 'main-2', 'skew']
    """
    keys: list[str] = []
    for index, name in enumerate(names):
        before = names[:index].count(name)
        keys.append(f"{name}-{before + 1}" if before else name)
    return keys


def _cards(tables: Sequence[PaperTable]) -> list[Card]:
    told = counts(tables)
    cards = [("Claims of the paper", str(sum(told.values())), f"in {len(tables)} tables")]
    about = ("interval above 0", "interval below 0", "0 inside, or one seed")
    outcomes = zip(told.items(), about, strict=True)
    return [*cards, *((upper(name), str(n), more) for (name, n), more in outcomes)]


def _section(key: str, table: PaperTable) -> Section:
    failures = tuple(f"{row.name} failed: {row.note}" for row in table.rows if row.note)
    lead = " ".join([f"Data: {table.data}.", f"{upper(table.settings)}.", *table.notes])
    numbers = replace(tables_of.number_table(table), alarms=())
    tables = [t for t in (numbers, tables_of.verdict_table(table.verdicts)) if t.rows]
    return Section(key, heading(table), lead, tuple(charts(key, table)), tuple(tables), failures)
