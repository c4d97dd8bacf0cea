"""Charts of a stream over time: quality, drift, and how it keeps up."""

__all__ = [
    "LINES",
    "drift_plots",
    "learner_plots",
    "pace_plots",
    "quality_plots",
    "series_colors",
]

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from harmonrank.reports.plots import DASHES, LEGEND, MUTED, PALETTE, Plot, hover_text, plot, scatter
from harmonrank.reports.stability import PSI_DRIFTED, PSI_MOVED
from harmonrank.reports.stream._marks import (
    line_marks,
    milliseconds,
    shown_time,
    time_axis,
    upright_lines,
)
from harmonrank.reports.stream._records import End, QualityRecord, StreamHistory
from harmonrank.reports.stream._tables import newest_table

LINES = {
    "window": (PALETTE[0], "solid", True),
    "each batch": (MUTED, "solid", False),
    "exact": (PALETTE[2], "solid", True),
    "ceiling": (PALETTE[1], "dash", True),
}
"""Lines of the charts of quality: colour, dash, and whether they are shown at first."""

_SUM = "auc-sum"
_BAND = "rgba(0,119,187,.16)"
_WHEN = "%{x|%Y-%m-%d %H:%M}"
_UNITS = ((2 * 86_400.0, "days", 86_400.0), (7_200.0, "hours", 3_600.0), (180.0, "minutes", 60.0))

Value = Callable[[QualityRecord], End]
Ends = Callable[[QualityRecord], tuple[End, End]]


def quality_plots(history: StreamHistory) -> list[Plot]:
    """Draw the prequential AUC-sum, then the AUC of each objective."""
    whole = _quality_plot(
        history,
        _SUM,
        "AUC-sum",
        lambda q: q.auc_sum,
        lambda q: q.ci,
        {"exact": lambda q: q.exact_auc_sum, "ceiling": lambda q: q.ceiling},
    )
    return [whole, *(_objective_plot(history, name) for name in history.objectives())]


def _objective_plot(history: StreamHistory, name: str) -> Plot:
    return _quality_plot(
        history,
        f"auc-of-{name}",
        f"AUC of {name}",
        lambda q: q.auc[name],
        lambda q: q.auc_ci[name],
        {"exact": lambda q: None if q.exact_auc is None else q.exact_auc[name]},
    )


def _quality_plot(
    history: StreamHistory,
    key: str,
    title: str,
    value: Value,
    ends: Ends,
    others: Mapping[str, Value],
) -> Plot:
    """Draw the window's value with its interval, and of each batch its own and exact ones."""
    wide = key == _SUM
    known = [(b, q, v) for b, q in history.scored() if (v := value(q)) is not None]
    times, values = [b.end for b, _, _ in known], [v for _, _, v in known]
    single = [(b.end, v) for b, _, _ in known if b.batch and (v := value(b.batch)) is not None]
    data = _band(times, [ends(q) for _, q, _ in known])
    data += _line("each batch", [t for t, _ in single], [v for _, v in single])
    # What is exact has no chance in it, so that each batch can be told by itself.
    extra = {
        n: [None if b.batch is None else of(b.batch) for b, _, _ in known]
        for n, of in others.items()
    }
    extra = {name: found for name, found in extra.items() if None not in found}
    for name, found in extra.items():
        data += _line(name, times, found)
    # A small chart has no room for what every batch has.
    kinds = ("published", "recalibrated", "refused") if wide else ("recalibrated", "refused")
    data += _line("window", times, values) + line_marks(history, times, values, kinds)
    rows = [
        (shown_time(b.end), b.rows, v, *ends(q), *(found[i] for found in extra.values()))
        for i, (b, q, v) in enumerate(known)
    ]
    columns = ("until (UTC)", "rows", title, "from", "to", *extra)
    return plot(
        key,
        f"{title}, prequential",
        data,
        newest_table(columns, rows, dict.fromkeys(columns[2:], ".4f")),
        x=time_axis(history),
        y={"title": f"{title} (no unit)"},
        height=380 if wide else 260,
        wide=wide,
        showlegend=False,
        **upright_lines(history, named=wide),
    )


def _line(name: str, times: Sequence[datetime], values: Sequence[Any]) -> list[dict[str, Any]]:
    color, dash, _ = LINES[name]
    look = {"color": color, "dash": dash, "width": 2 if name != "each batch" else 1}
    hover = f"{name}<br>{_WHEN}<br>%{{y:.4f}}"
    x = [milliseconds(time) for time in times]
    return [scatter(name, x, values, hover, "lines", meta=name, line=look)] if x else []


def _band(times: Sequence[datetime], ends: Sequence[tuple[End, End]]) -> list[dict[str, Any]]:
    """Return the interval as a band around a line, where it is known."""
    known = [(milliseconds(t), *pair) for t, pair in zip(times, ends, strict=True)]
    known = [row for row in known if row[1] is not None and row[2] is not None]
    if not known:
        return []
    x = [row[0] for row in known]
    outline = {"x": x + x[::-1], "y": [r[1] for r in known] + [r[2] for r in known[::-1]]}
    look = {"fill": "toself", "fillcolor": _BAND, "line": {"width": 0}, "hoverinfo": "skip"}
    return [{"type": "scatter", "mode": "lines", "meta": "window", **outline, **look}]


def drift_plots(history: StreamHistory) -> list[Plot]:
    """Draw how far each score has moved: its distribution, and its median."""
    measured = [interval for interval in history.intervals if interval.moves]
    if not measured:
        return []
    columns = list(measured[-1].moves)
    moves = [[i.moves.get(name) for i in measured] for name in columns]
    index = [[None if m is None else m.psi for m in found] for found in moves]
    offset = [[None if m is None else m.offset for m in found] for found in moves]
    times = [interval.end for interval in measured]
    lines = upright_lines(history)["shapes"]
    limits = [_level(PSI_MOVED), _level(PSI_DRIFTED)]
    return [
        _series_plot(
            history,
            "psi",
            "Population stability index",
            "PSI (no unit)",
            times,
            dict(zip(columns, index, strict=True)),
            digits=".3f",
            shapes=[*lines, *limits],
        ),
        _series_plot(
            history,
            "offset",
            "Median given the context",
            "change (standard deviations)",
            times,
            dict(zip(columns, offset, strict=True)),
            digits="+.3f",
            shapes=lines,
        ),
    ]


def _level(value: float) -> dict[str, Any]:
    line = {"color": MUTED, "width": 1, "dash": "dash"}
    ends = {"x0": 0, "x1": 1, "xref": "paper", "y0": value, "y1": value}
    return {"type": "line", **ends, "line": line}


def series_colors(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the colour and the dash of each line, the same in all charts of a section."""
    return {
        name: (PALETTE[i % len(PALETTE)], DASHES[i // len(PALETTE) % len(DASHES)])
        for i, name in enumerate(names)
    }


def _series_plot(
    history: StreamHistory,
    key: str,
    title: str,
    unit: str,
    times: Sequence[datetime],
    series: Mapping[str, Sequence[float | None]],
    *,
    digits: str = ",.0f",
    **layout: Any,
) -> Plot:
    """Draw a line per name."""
    x, styles = [milliseconds(time) for time in times], series_colors(list(series))
    data = [
        scatter(
            name,
            x,
            values,
            f"{hover_text(name)}<br>{_WHEN}<br>%{{y:.4g}}",
            "lines+markers",
            meta=name,
            line={"color": styles[name][0], "dash": styles[name][1], "width": 2},
            marker={"size": 4},
        )
        for name, values in series.items()
    ]
    rows = list(zip(map(shown_time, times), *series.values(), strict=True))
    table = newest_table(("until (UTC)", *series), rows, dict.fromkeys(series, digits))
    y = {"title": unit, "rangemode": "tozero"}
    layout = {"showlegend": False, **layout}
    return plot(key, title, data, table, x=time_axis(history), y=y, **layout)


def pace_plots(history: StreamHistory) -> list[Plot]:
    """Draw rows, speed, lag, and what was set aside."""
    batches = history.batches
    times = [batch.end for batch in batches]
    rows, speed = _one("rows", batches), _one("rows_per_second", batches)
    found = [
        _series_plot(history, "rows", "Labelled rows", "rows per interval", times, rows),
        _series_plot(history, "speed", "Speed", "rows per second", times, speed),
    ]
    lags = [batch.lag_seconds for batch in batches]
    if any(lag is not None for lag in lags):
        unit, seconds = _unit(max(lag for lag in lags if lag is not None))
        scaled = {"lag": [None if lag is None else lag / seconds for lag in lags]}
        found.append(_series_plot(history, "lag", "Lag", unit, times, scaled, digits=".3g"))
    reasons = list(batches[-1].aside)
    if reasons:
        total = {reason: [batch.aside.get(reason, 0) for batch in batches] for reason in reasons}
        drawn = _series_plot(history, "aside", "Set aside", "events so far", times, total)
        found.append(replace(drawn, layout={**drawn.layout, "showlegend": True, "legend": LEGEND}))
    return found


def _one(field: str, batches: Sequence[Any]) -> dict[str, list[float | None]]:
    return {field.replace("_", " "): [getattr(batch, field) for batch in batches]}


def _unit(longest: float) -> tuple[str, float]:
    """Return the unit in which a time is best read."""
    return next(((unit, s) for least, unit, s in _UNITS if longest >= least), ("seconds", 1.0))


def learner_plots(history: StreamHistory) -> list[Plot]:
    """Draw the facts of the learner that change with time."""
    found = []
    for fact in (name for name in history.batches[-1].learner if name != "learned_rows"):
        values = [batch.learner.get(fact) for batch in history.batches]
        numbers = [float(v) if isinstance(v, int | float) else None for v in values]
        if len({v for v in numbers if v is not None}) > 1:
            times = [batch.end for batch in history.batches]
            name = fact.replace("_", " ")
            title = f"{name[:1].upper()}{name[1:]}"
            series = {name: numbers}
            found.append(
                _series_plot(history, f"learner-{fact}", title, name, times, series, digits=",.4g")
            )
    return found
