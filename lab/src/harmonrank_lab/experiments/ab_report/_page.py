"""An experiment's analysis as one HTML page."""

__all__ = ["ab_page"]

from dataclasses import replace
from math import isnan
from typing import Any

from harmonrank.reports.facts import Run
from harmonrank.reports.html import Card, page
from harmonrank.reports.plots import ACCENT, MUTED, PALETTE, Plot, plot, scatter, whiskers
from harmonrank.reports.sections import Section
from harmonrank.support.table import table_of
from harmonrank_lab.experiments.ab import Analysis, Lift
from harmonrank_lab.experiments.ab_report._text import (
    Scale,
    ab_table,
    alarms,
    left_out,
    lifts_of,
    p_text,
    scaled,
    verdicts,
)

_ROW = 30


_COLORS = {"better": PALETTE[2], "worse": PALETTE[5], "unclear": ACCENT, "A/A": MUTED}


def ab_page(
    analysis: Analysis, run: Run, *, scale: Scale = "relative", common_axis: bool = False
) -> str:
    """Return one HTML page with the lifts and their intervals as charts.

    Args:
        analysis: What an experiment's log says.
        run: How it was made.
        scale: As for `ab_table`.
        common_axis: One chart of all outcomes on one axis, in place of a chart each.
    """
    over = f"over that of {analysis.control}, in percent"
    if scale == "absolute":
        over = f"minus that of {analysis.control}, in its own unit"
    lead = (
        f"Mean outcome per {analysis.per} {over}; whiskers "
        f"are {100 * analysis.level:g} % intervals by the delta method, users being the unit. "
        "Detects is what a test would find four times out of five; Holm's p-value "
        "allows for the number of lifts looked at, and a star marks what holds after it: better or "
        "worse by whether the outcome is wanted."
    )
    plots = tuple(_chart(analysis, [name], name, scale) for name in analysis.outcomes)
    if common_axis:
        plots = (_chart(analysis, list(analysis.outcomes), "all outcomes", scale),)
    lifts = replace(ab_table(analysis, scale), title="", alarms=(), notes=())
    parts = [
        Section("lifts", "Lifts", lead, plots, (lifts,), tuple(alarms(analysis))),
        _checks(analysis),
    ]
    others = ", ".join(arm for arm in analysis.arms if arm != analysis.control)
    title, said = f"{others} against {analysis.control}", " ".join(verdicts(analysis))
    return page(title, run, _cards(analysis), parts, said)


def _cards(analysis: Analysis) -> list[Card]:
    ratio, words = analysis.sample_ratio, [lift.verdict for lift in analysis.lifts]
    held = f"{words.count('better')} better, {words.count('worse')} worse"
    return [
        ("Users", f"{sum(ratio.users.values()):,}", f"in {len(analysis.arms)} arms"),
        ("Lifts that hold", held, "after Holm's adjustment"),
        ("Sample ratio", "ALARM" if ratio.alarm else "as intended", f"p {p_text(ratio.p)}"),
        ("A/A check", "ALARM" if analysis.aa.alarm else "passed", f"{analysis.aa.splits} splits"),
    ]


def _chart(analysis: Analysis, outcomes: list[str], title: str, scale: Scale) -> Plot:
    lifts = [lift for name in outcomes for lift in lifts_of(analysis, name)]
    named = [
        (_row_name(analysis, x, one=len(outcomes) == 1), x.verdict, *scaled(x, scale))
        for x in lifts
    ]
    unit = "lift %" if scale == "relative" else "change"
    over = "lift over {} (%)" if scale == "relative" else "mean minus that of {}"
    zero = {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper"}
    return plot(
        f"lift-{title}",
        title,
        [_dots(named, unit)],
        table_of(
            ("arm" if len(outcomes) == 1 else "outcome, arm", "verdict", unit, "low", "high"),
            named,
            dict.fromkeys((unit, "low", "high"), "+.2f" if scale == "relative" else "+.3g"),
        ),
        x={"title": over.format(analysis.control)},
        y={"autorange": "reversed", "showgrid": False, "type": "category"},
        height=110 + _ROW * len(lifts),
        wide=len(outcomes) > 1,
        showlegend=False,
        shapes=[{**zero, "line": {"color": MUTED, "width": 1, "dash": "dot"}}],
    )


def _row_name(analysis: Analysis, lift: Lift, *, one: bool) -> str:
    if one:
        return lift.arm
    return lift.outcome if len(analysis.arms) == 2 else f"{lift.outcome}, {lift.arm}"


def _dots(named: list[tuple[Any, ...]], unit: str) -> dict[str, Any]:
    known = [row for row in named if not isnan(row[3])]
    names, words, values, low, high = zip(*known, strict=True) if known else ((),) * 5
    return scatter(
        unit,
        values,
        names,
        "%{y}<br>" + unit + " %{x:.4g}<br>%{text}",
        text=words,
        error_x=whiskers(values, low, high, thickness=2, width=5),
        marker={"size": 11, "color": [_COLORS[word] for word in words]},
    )


def _checks(analysis: Analysis) -> Section:
    ratio, aa = analysis.sample_ratio, analysis.aa
    users = tuple(
        (arm, seen, ratio.intended[arm], seen / sum(ratio.users.values()))
        for arm, seen in ratio.users.items()
    )
    halves = tuple((name, share, *aa.usual) for name, share in aa.below.items())
    lead = (
        "A split that is not as intended, or halves of one arm that differ too often, says that "
        "something is wrong with the experiment or its log, whatever the lifts are. "
        f"The users of {analysis.control} were halved {aa.splits} times by another hash; by chance "
        "one p-value in twenty falls below .05."
    )
    return Section(
        "checks",
        "Checks",
        lead,
        tables=(
            table_of(
                ("arm", "users", "intended", "seen"), users, {"intended": ".2%", "seen": ".2%"}
            ),
            table_of(
                ("outcome", "p < .05 in A/A", "usual from", "to"),
                halves,
                dict.fromkeys(("p < .05 in A/A", "usual from", "to"), ".1%"),
            ),
        ),
        notes=tuple(left_out(analysis)),
    )
