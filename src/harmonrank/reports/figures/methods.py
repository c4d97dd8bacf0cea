"""Charts of what each method makes of the scores: responses, weights, calibration."""

__all__ = [
    "UPSTREAM",
    "calibration_plots",
    "context_plots",
    "method_styles",
    "response_panels",
    "share_plot",
]

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

from harmonrank.reports import plots
from harmonrank.reports.facts import Facts
from harmonrank.reports.model_facts import Bin, Curve
from harmonrank.support.table import table_of

_PATTERNS = ("", "/", ".")
_WIDE = 100
UPSTREAM = "upstream scores"
"""What the calibration of the scores as they came is called."""


def method_styles(facts: Facts) -> dict[str, dict[str, str]]:
    """Return the colour and the dash of each method, the same in every chart."""
    return plots.styles(facts.board.qualities)


def response_panels(
    objectives: Sequence[str],
    curves: Mapping[str, Sequence[Curve]],
    looks: Mapping[str, Mapping[str, Any]],
) -> list[plots.Plot]:
    """Return a panel per objective with a line of each method, looking as told."""
    if not curves:
        return []
    by_objective = zip(*curves.values(), strict=True)
    return [
        _response(objective, dict(zip(curves, drawn, strict=True)), looks)
        for objective, drawn in zip(objectives, by_objective, strict=True)
    ]


def _response(
    objective: str, curves: Mapping[str, Curve], looks: Mapping[str, Mapping[str, Any]]
) -> plots.Plot:
    data = [
        plots.line(
            name,
            list(map(plots.logit, curve.x)),
            curve.y,
            "score %{customdata:.3g} %<br>%{y:+.2f} sd",
            looks[name],
            customdata=[100 * p for p in curve.x],
        )
        for name, curve in curves.items()
    ]
    x = next(iter(curves.values())).x
    rows = [(x[i], *(c.y[i] for c in curves.values())) for i in range(0, len(x), 4)]
    return plots.plot(
        f"response-{objective}",
        objective,
        data,
        table_of(("score", *curves), rows, {"score": ".3%"} | dict.fromkeys(curves, "+.3f")),
        x=plots.logit_axis(f"score of {objective}", x[0], x[-1]),
        y={"title": "fused score (sd)"},
        shapes=[plots.level(0)],
    )


def context_plots(
    objectives: Sequence[str], pulls: Mapping[str, Mapping[str, Sequence[float]]]
) -> list[plots.Plot]:
    """One panel per context column: what moves the fused score, by value."""
    return [
        share_plot(objectives, f"weights-{column}", column, values, row=18)
        for column, values in pulls.items()
    ]


def share_plot(
    objectives: Sequence[str],
    name: str,
    title: str,
    rows: Mapping[str, Sequence[float]],
    *,
    row: int = plots.ROW,
    wide: bool = False,
) -> plots.Plot:
    """Return shares of 1 as stacked bars, one per row, one colour per objective.

    Of sizes: what counts against a row moves it as much as what counts for it.
    """
    data = [
        plots.bars(
            objective,
            list(rows),
            [100 * abs(shares[m]) for shares in rows.values()],
            f"{plots.hover_text(objective)} %{{x:.1f}} %",
            meta=objective,
            marker=_segment(m),
        )
        for m, objective in enumerate(objectives)
    ]
    shares = [(label, *values) for label, values in rows.items()]
    return plots.plot(
        name,
        title,
        data,
        table_of(("", *objectives), shares, dict.fromkeys(objectives, ".1%")),
        x={"title": "share (%)", "range": [0, 100]},
        y=plots.ROWS,
        height=100 + row * len(rows),
        wide=wide,
        barmode="stack",
    )


def _segment(m: int) -> dict[str, Any]:
    """Return the look of an objective; where colours come again, a pattern tells them apart."""
    shape = _PATTERNS[m // len(plots.PALETTE) % len(_PATTERNS)]
    pattern = {"shape": shape, "fillmode": "overlay", "fgcolor": "--panel", "size": 6}
    edge = {"width": 1, "color": "--panel"}
    color = plots.PALETTE[m % len(plots.PALETTE)]
    return {"color": color, "line": edge, "pattern": {**pattern, "solidity": 0.3}}


def calibration_plots(facts: Facts) -> list[plots.Plot]:
    """One panel per objective: predicted against observed, with upstream's own scores."""
    told = {n: f.calibration for n, f in facts.methods.items() if f.calibration}
    if not told:
        return []
    told[UPSTREAM] = facts.upstream
    panels = [{n: bins[m] for n, bins in told.items()} for m in range(len(facts.upstream))]
    # A graded objective has no share of positives.
    return [
        _calibration(facts, objective, curves)
        for objective, curves in zip(facts.board.objectives, panels, strict=True)
        if any(curves.values())
    ]


def _calibration(facts: Facts, objective: str, curves: Mapping[str, Sequence[Bin]]) -> plots.Plot:
    every = [b for bins in curves.values() for b in bins]
    low = min(max(min(b.predicted, b.observed), 1e-5) for b in every) / 1.3
    high = min(max(max(b.predicted, b.observed) for b in every) * 1.3, 1.0)
    equal = {"color": plots.MUTED, "dash": "dot", "width": 1.5}
    data = [plots.scatter("", [low, high], [low, high], "", "lines", line=equal, hoverinfo="skip")]
    looks = {**method_styles(facts), UPSTREAM: {"color": plots.MUTED, "dash": "dash"}}
    data += [_curve(name, bins, looks[name], name == facts.focus) for name, bins in curves.items()]
    columns = ("predicted", "observed", "low", "high")
    rows = [
        (name, b.rows, b.predicted, b.observed, b.low, b.high)
        for name, bins in curves.items()
        for b in bins
    ]
    scale = {
        "type": "log",
        "range": [log(low, 10), log(high, 10)],
        "tickformat": ".3~%",
        # An axis without a power of ten on it would have no tick: it shows 2 and 5 times too.
        "dtick": 1 if high / low > _WIDE else "D2",
    }
    return plots.plot(
        f"calibration-{objective}",
        objective,
        data,
        table_of(("method", "rows", *columns), rows, dict.fromkeys(columns, ".3%")),
        x={"title": "predicted probability (%, log scale)", **scale},
        y={"title": "observed (%, log scale)", **scale},
        height=320,
    )


def _curve(name: str, bins: Sequence[Bin], look: Mapping[str, Any], focus: bool) -> dict[str, Any]:
    observed = [b.observed for b in bins]
    lows, highs = [b.low for b in bins], [b.high for b in bins]
    spread = (
        {"error_y": plots.whiskers(observed, lows, highs, thickness=1.2, width=3)} if focus else {}
    )
    return plots.line(
        name,
        [b.predicted for b in bins],
        # A logarithm has no place for none at all.
        [value if value > 0 else None for value in observed],
        "predicted %{x:.3%}<br>observed %{y:.3%}",
        look,
        "lines+markers",
        marker={"size": 6},
        **spread,
    )
