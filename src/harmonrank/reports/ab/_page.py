"""An experiment's analysis as one HTML page."""

__all__ = ["ab_page"]

from dataclasses import replace
from math import isnan

from harmonrank.evaluation.ab import Analysis
from harmonrank.reports.ab._text import ab_table, alarms, left_out, lifts_of, p_text
from harmonrank.reports.facts import Run
from harmonrank.reports.html import Card, page
from harmonrank.reports.plots import ACCENT, MUTED, Plot, plot, scatter, whiskers
from harmonrank.reports.sections import Section
from harmonrank.table import table_of

_ROW = 30


def ab_page(analysis: Analysis, run: Run) -> str:
    """Return one HTML page with the lifts and their intervals as charts."""
    lead = (
        f"Mean outcome per {analysis.per} over that of {analysis.control}, in percent; whiskers "
        f"are {100 * analysis.level:g} % intervals by the delta method, users being the unit. "
        "Detects is the lift that a test would find four times out of five; Holm's p-value "
        "allows for the number of lifts looked at, and a star marks what holds after it."
    )
    plots = tuple(_chart(analysis, name) for name in analysis.outcomes)
    lifts = replace(ab_table(analysis), alarms=(), notes=())
    parts = [
        Section("lifts", "Lifts", lead, plots, (lifts,), tuple(alarms(analysis))),
        _checks(analysis),
    ]
    others = ", ".join(arm for arm in analysis.arms if arm != analysis.control)
    return page(f"{others} against {analysis.control}", run, _cards(analysis), parts)


def _cards(analysis: Analysis) -> list[Card]:
    ratio, sure = analysis.sample_ratio, 1 - analysis.level
    found = [lift for lift in analysis.lifts if lift.p_holm < sure]
    up, down = sum(lift.lift > 0 for lift in found), sum(lift.lift < 0 for lift in found)
    return [
        ("Users", f"{sum(ratio.users.values()):,}", f"in {len(analysis.arms)} arms"),
        ("Lifts that hold", f"{up} up, {down} down", "after Holm's adjustment"),
        ("Sample ratio", "ALARM" if ratio.alarm else "as intended", f"p {p_text(ratio.p)}"),
        ("A/A check", "ALARM" if analysis.aa.alarm else "passed", f"{analysis.aa.splits} splits"),
    ]


def _chart(analysis: Analysis, outcome: str) -> Plot:
    lifts = lifts_of(analysis, outcome)
    known = [lift for lift in lifts if not isnan(lift.low)]
    values = [lift.lift for lift in known]
    ends = [lift.low for lift in known], [lift.high for lift in known]
    colors = [MUTED if lift.arm == analysis.aa_arm else ACCENT for lift in known]
    dots = scatter(
        outcome,
        values,
        [lift.arm for lift in known],
        "%{y}<br>lift %{x:.2f} %",
        error_x=whiskers(values, *ends, thickness=2, width=5),
        marker={"size": 11, "color": colors},
    )
    zero = {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper"}
    return plot(
        f"lift-{outcome}",
        outcome,
        [dots],
        table_of(
            ("arm", "lift %", "low", "high"),
            tuple((lift.arm, lift.lift, lift.low, lift.high) for lift in lifts),
            dict.fromkeys(("lift %", "low", "high"), "+.2f"),
        ),
        x={"title": f"lift over {analysis.control} (%)"},
        y={"autorange": "reversed", "showgrid": False, "type": "category"},
        height=110 + _ROW * len(lifts),
        showlegend=False,
        shapes=[{**zero, "line": {"color": MUTED, "width": 1, "dash": "dot"}}],
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
