"""Charts of what moves the fused score: responses, effective weights, by context."""

__all__ = ["context_plots", "pull_plot", "response_panels", "response_plots", "share_plot"]

from collections.abc import Mapping, Sequence
from typing import Any

from harmonrank.reports.facts import Facts
from harmonrank.reports.figures._common import style
from harmonrank.reports.model_facts import Curve
from harmonrank.reports.plots import (
    MUTED,
    PALETTE,
    Plot,
    hover_text,
    logit,
    logit_axis,
    plot,
    scatter,
)
from harmonrank.support.table import table_of

_ROW = 26
_PATTERNS = ("", "/", ".")


def response_plots(facts: Facts) -> list[Plot]:
    """One panel per objective: the fused score as that objective's score moves."""
    curves = {n: f.response for n, f in facts.methods.items() if f.response}
    lines = {n: style(facts, n) | {"width": 3 if n == facts.focus else 2} for n in curves}
    return response_panels(facts.board.objectives, curves, lines)


def response_panels(
    objectives: Sequence[str],
    curves: Mapping[str, Sequence[Curve]],
    lines: Mapping[str, Mapping[str, Any]],
) -> list[Plot]:
    """Return a panel per objective with a line of each method, looking as told."""
    plots = []
    for m, objective in enumerate(objectives if curves else ()):
        data = [
            scatter(
                name,
                [logit(p) for p in responses[m].x],
                responses[m].y,
                f"{hover_text(name)}<br>score %{{customdata:.3g}} %<br>%{{y:+.2f}} sd",
                "lines",
                meta=name,
                customdata=[100 * p for p in responses[m].x],
                line=dict(lines[name]),
            )
            for name, responses in curves.items()
        ]
        x = next(iter(curves.values()))[m].x
        picked = range(0, len(x), 4)
        plots.append(
            plot(
                f"response-{objective}",
                objective,
                data,
                table_of(
                    ("score", *curves),
                    tuple((x[i], *(c[m].y[i] for c in curves.values())) for i in picked),
                    {"score": ".3%"} | dict.fromkeys(curves, "+.3f"),
                ),
                x=logit_axis(f"score of {objective}", x[0], x[-1]),
                y={"title": "fused score (sd)"},
                showlegend=False,
                shapes=[_level(0)],
            )
        )
    return plots


def _level(y: float) -> dict[str, Any]:
    line = {"color": MUTED, "width": 1, "dash": "dot"}
    return {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": y, "y1": y, "line": line}


def pull_plot(facts: Facts) -> list[Plot]:
    """What moves the fused score: the weights by formula, then each method as it acts."""
    pulls = {n: f.pulls for n, f in facts.methods.items() if f.pulls}
    formula = "w/(π(1−π))" if facts.board.value_k is None else "value of an event"
    rows: dict[str, Sequence[float]] = {
        # Sizes: what counts against a row moves it as much as what counts for it.
        formula: [abs(o.effective_weight) for o in facts.data.objectives],
        **pulls,
    }
    return [
        share_plot(
            facts.board.objectives,
            "weights",
            "Effective weights, and what moves each method's fused score",
            rows,
            100 + _ROW * len(rows),
            True,
        )
    ]


def context_plots(facts: Facts) -> list[Plot]:
    """One panel per context column: what moves the fused score, by value."""
    return [
        share_plot(
            facts.board.objectives,
            f"weights-{name}",
            name,
            dict(values),
            100 + 18 * len(values),
            False,
        )
        for name, values in facts.context_pulls.items()
    ]


def share_plot(
    objectives: Sequence[str],
    name: str,
    title: str,
    rows: Mapping[str, Sequence[float]],
    height: int,
    wide: bool,
) -> Plot:
    """Return shares of 1 as stacked bars, one per row, one colour per objective."""
    labels = list(rows)
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": objective,
            "meta": objective,
            "y": labels,
            "x": [100 * rows[label][m] for label in labels],
            "marker": {
                "color": PALETTE[m % len(PALETTE)],
                "line": {"width": 1, "color": "--panel"},
                # Where colours come again, a pattern tells objectives apart.
                "pattern": {
                    "shape": _PATTERNS[m // len(PALETTE) % len(_PATTERNS)],
                    "fillmode": "overlay",
                    "fgcolor": "--panel",
                    "size": 6,
                    "solidity": 0.3,
                },
            },
            "hovertemplate": f"%{{y}}<br>{hover_text(objective)} %{{x:.1f}} %<extra></extra>",
        }
        for m, objective in enumerate(objectives)
    ]
    return plot(
        name,
        title,
        data,
        table_of(
            ("", *objectives),
            tuple((label, *rows[label]) for label in labels),
            dict.fromkeys(objectives, ".1%"),
        ),
        x={"title": "share (%)", "range": [0, 100]},
        y={"autorange": "reversed", "type": "category", "showgrid": False},
        height=height,
        wide=wide,
        barmode="stack",
        showlegend=False,
    )
