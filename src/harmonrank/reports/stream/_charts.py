"""Charts of a stream over time: quality, drift, and how it keeps up."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from harmonrank.reports.plots import MUTED, PALETTE, Plot, level, line, plot, styles
from harmonrank.reports.stability import PSI_DRIFTED, PSI_MOVED
from harmonrank.reports.stream._history import StreamHistory
from harmonrank.reports.stream._marks import (
    WHEN,
    line_marks,
    milliseconds,
    shown_time,
    time_axis,
    upright_lines,
)
from harmonrank.reports.stream._tables import newest_table

if TYPE_CHECKING:
    from harmonrank.streaming.loop_events import QualityFacts

LINES = {
    "window": (PALETTE[0], "solid", True),
    "each batch": (MUTED, "solid", False),
    "exact": (PALETTE[2], "solid", True),
    "ceiling": (PALETTE[1], "dash", True),
}
"""Lines of the charts of quality: colour, dash, and whether they are shown at first."""

_BAND = "rgba(0,119,187,.16)"
_UNITS = ((2 * 86_400.0, "days", 86_400.0), (7_200.0, "hours", 3_600.0), (180.0, "minutes", 60.0))

End: TypeAlias = float | None


class _Figures(NamedTuple):
    """One figure of a quality: its estimate and interval, and what is exact."""

    value: End = None
    ends: tuple[End, End] = (None, None)
    exact: End = None
    ceiling: End = None

    @classmethod
    def of(cls, quality: "QualityFacts | None", name: str | None) -> Self:
        """Return those of an objective, or of the sum."""
        if quality is None:
            return cls()
        if name is None:
            return cls(quality.auc_sum, quality.ci, quality.exact_auc_sum, quality.ceiling)
        return cls(quality.auc[name], quality.auc_ci[name], (quality.exact_auc or {}).get(name))


def quality_plots(history: StreamHistory) -> list[Plot]:
    """Draw the prequential AUC-sum and AUC of each objective: within requests, then over all rows.

    What is exact is known over all rows.
    """
    within = _area_plots(history.within_requests(), "request-auc", " within requests")
    return within + _area_plots(history, "auc", " over all rows" if within else "")


def _area_plots(history: StreamHistory, key: str, where: str) -> list[Plot]:
    names = history.objectives()
    if not names:
        return []
    whole = _quality_plot(history, f"{key}-sum", f"AUC-sum{where}", None)
    return [
        whole,
        *(_quality_plot(history, f"{key}-of-{n}", f"AUC of {n}{where}", n) for n in names),
    ]


def _quality_plot(history: StreamHistory, key: str, title: str, name: str | None) -> Plot:
    """Draw the window's value with its interval, and of each batch its own and exact ones."""
    wide = name is None
    told = [(b, _Figures.of(q, name), _Figures.of(b.batch, name)) for b, q in history.scored()]
    told = [each for each in told if each[1].value is not None]
    times, values = (
        [b.end for b, _, _ in told],
        [w.value for _, w, _ in told if w.value is not None],
    )
    data = _band(times, [window.ends for _, window, _ in told])
    single = [(b.end, own.value) for b, _, own in told if own.value is not None]
    data += _line("each batch", [t for t, _ in single], [v for _, v in single])
    # What is exact has no chance in it, so that each batch can be told by itself.
    exact = {n: [getattr(own, n) for _, _, own in told] for n in ("exact", "ceiling")}
    extra = {n: series for n, series in exact.items() if None not in series}
    for line_name, series in extra.items():
        data += _line(line_name, times, series)
    # A small chart has no room for what every batch has.
    kinds = ("published", "recalibrated", "refused") if wide else ("recalibrated", "refused")
    data += _line("window", times, values) + line_marks(history, times, values, kinds)
    rows = [
        (shown_time(b.end), b.rows, w.value, *w.ends, *(series[i] for series in extra.values()))
        for i, (b, w, _) in enumerate(told)
    ]
    columns = ("until (UTC)", "rows", title, "from", "to", *extra)
    return plot(
        key,
        f"{title}, prequential",
        data,
        newest_table(columns, rows, dict.fromkeys(columns[2:], ".4f")),
        x=time_axis(history),
        y={"title": "AUC-sum (no unit)" if wide else "AUC (no unit)"},
        height=380 if wide else 260,
        wide=wide,
        **upright_lines(history, named=wide),
    )


def _line(name: str, times: Sequence[datetime], values: Sequence[Any]) -> list[dict[str, Any]]:
    color, dash, _ = LINES[name]
    look = {"color": color, "dash": dash, "width": 2 if name != "each batch" else 1}
    x = list(map(milliseconds, times))
    return [line(name, x, values, f"{WHEN}<br>%{{y:.4f}}", look)] if x else []


def _band(times: Sequence[datetime], ends: Sequence[tuple[End, End]]) -> list[dict[str, Any]]:
    """Return the interval as a band around a line, where it is known."""
    known = [(milliseconds(t), *pair) for t, pair in zip(times, ends, strict=True)]
    known = [row for row in known if row[1] is not None and row[2] is not None]
    if not known:
        return []
    x, low, high = map(list, zip(*known, strict=True))
    outline = {"x": x + x[::-1], "y": low + high[::-1], "fill": "toself", "fillcolor": _BAND}
    look = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    return [{"type": "scatter", "meta": "window", **outline, **look}]


def drift_plots(history: StreamHistory) -> list[Plot]:
    """Draw how far each score has moved: its distribution, and its median."""
    measured = [interval for interval in history.intervals if interval.moves]
    if not measured:
        return []
    times, changes = [interval.end for interval in measured], upright_lines(history)["shapes"]
    moves = {name: [i.moves.get(name) for i in measured] for name in measured[-1].moves}
    psi = {n: [None if m is None else m.psi for m in each] for n, each in moves.items()}
    offset = {n: [None if m is None else m.offset for m in each] for n, each in moves.items()}
    shapes = [*changes, level(PSI_MOVED, "dash"), level(PSI_DRIFTED, "dash")]
    words = ("psi", "Population stability index", "PSI (no unit)")
    index = _series_plot(history, *words, times, psi, digits=".3f", shapes=shapes)
    words = ("offset", "Median given the context", "change (standard deviations)")
    median = _series_plot(history, *words, times, offset, digits="+.3f", shapes=changes)
    return [index, median]


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
    x, hover = list(map(milliseconds, times)), f"{WHEN}<br>%{{y:.4g}}"
    data = [
        line(name, x, series[name], hover, look, "lines+markers", marker={"size": 4})
        for name, look in styles(series).items()
    ]
    rows = list(zip(map(shown_time, times), *series.values(), strict=True))
    table = newest_table(("until (UTC)", *series), rows, dict.fromkeys(series, digits))
    y = {"title": unit, "rangemode": "tozero"}
    return plot(key, title, data, table, x=time_axis(history), y=y, **layout)


def pace_plots(history: StreamHistory) -> list[Plot]:
    """Draw rows, speed, lag, and what was set aside."""
    batches = history.batches
    if not batches:
        return []
    times = [batch.end for batch in batches]

    def drawn(key: str, title: str, unit: str, series: Mapping[str, Any], **look: Any) -> Plot:
        return _series_plot(history, key, title, unit, times, series, **look)

    speed = {"rows per second": [batch.rows_per_second for batch in batches]}
    charts = [
        drawn("rows", "Labelled rows", "rows per interval", {"rows": [b.rows for b in batches]}),
        drawn("speed", "Speed", "rows per second", speed),
    ]
    lags = [batch.lag_seconds for batch in batches]
    if any(lag is not None for lag in lags):
        unit, seconds = _unit(max(lag for lag in lags if lag is not None))
        scaled = {"lag": [None if lag is None else lag / seconds for lag in lags]}
        charts.append(drawn("lag", "Lag", unit, scaled, digits=".3g"))
    aside = {name: [b.aside.get(name, 0) for b in batches] for name in batches[-1].aside}
    if aside:
        charts.append(drawn("aside", "Set aside", "events so far", aside, showlegend=True))
    return charts


def _unit(longest: float) -> tuple[str, float]:
    """Return the unit in which a time is best read."""
    return next(((unit, s) for least, unit, s in _UNITS if longest >= least), ("seconds", 1.0))


def learner_plots(history: StreamHistory) -> list[Plot]:
    """Draw the facts of the learner that change with time."""
    charts, batches = [], history.batches
    facts = batches[-1].learner if batches else {}
    for fact in (name for name in facts if name != "learned_rows"):
        values = [batch.learner.get(fact) for batch in batches]
        numbers = [float(v) if isinstance(v, int | float) else None for v in values]
        if len(set(numbers) - {None}) > 1:
            name, times = fact.replace("_", " "), [batch.end for batch in batches]
            title = f"{name[:1].upper()}{name[1:]}"
            key, series = f"learner-{fact}", {name: numbers}
            charts.append(_series_plot(history, key, title, name, times, series, digits=",.4g"))
    return charts
