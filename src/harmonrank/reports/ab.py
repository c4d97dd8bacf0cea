"""An experiment's analysis: for a terminal of 80 columns, as Markdown, and as an HTML page."""

__all__ = ["ab_markdown", "ab_page", "ab_table"]

from collections.abc import Iterator
from math import isnan
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from harmonrank.evaluation.ab import Analysis, Lift
from harmonrank.reports.facts import Run
from harmonrank.reports.html import Card, page
from harmonrank.reports.markdown import markdown_table
from harmonrank.reports.plots import ACCENT, MUTED, Plot, Table, plot
from harmonrank.reports.sections import Section

_NAME = 13
_ROW = 30


def ab_table(analysis: Analysis) -> RenderableType:
    """Return a row per arm and outcome: mean, lift, interval, p-value, detectable lift."""
    table = Grid(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    for column in ("arm", "outcome"):
        table.add_column(column, no_wrap=True, max_width=_NAME)
    for column in ("mean", "lift %", _interval(analysis), "p", "detects"):
        table.add_column(column, justify="right", no_wrap=True)
    for name in analysis.outcomes:
        mean = analysis.mean(analysis.control, name).mean
        table.add_row(analysis.control, name, f"{mean:.4g}", style="dim")
        for lift in _of(analysis, name):
            table.add_row(lift.arm, name, *_cells(analysis, lift))
    alarms = [Text(line, style="bold red") for line in _alarms(analysis)]
    return Group(table, *alarms, *(Text(line, style="dim") for line in _lines(analysis)))


def ab_markdown(analysis: Analysis) -> str:
    """Return the same as a Markdown table."""
    head = ["arm", "outcome", "mean", "lift %", _interval(analysis), "p", "detects"]
    rows = []
    for name in analysis.outcomes:
        mean = analysis.mean(analysis.control, name).mean
        rows.append([analysis.control, name, f"{mean:.4g}", "", "", "", ""])
        rows += [[lift.arm, name, *_cells(analysis, lift)] for lift in _of(analysis, name)]
    notes = [f"**{line}**" for line in _alarms(analysis)] + list(_lines(analysis))
    return "\n\n".join([markdown_table(head, rows, texts=2), "  \n".join(notes)])


def _of(analysis: Analysis, outcome: str) -> list[Lift]:
    return [lift for lift in analysis.lifts if lift.outcome == outcome]


def _cells(analysis: Analysis, lift: Lift) -> list[str]:
    sure = "*" if lift.p_holm < 1 - analysis.level else " "
    return [
        f"{analysis.mean(lift.arm, lift.outcome).mean:.4g}",
        _signed(lift.lift) + sure,
        f"{_signed(lift.low)} … {_signed(lift.high)}",
        _p(lift.p),
        "–" if isnan(lift.detectable) else f"{lift.detectable:.2f}",
    ]


def _interval(analysis: Analysis) -> str:
    return f"{100 * analysis.level:g} % interval"


def _p(p: float) -> str:
    """Return a p-value in four digits.

    >>> _p(0.02567), _p(1e-9), _p(1.0)
    ('.0257', '<.0001', '1')
    """
    if isnan(p):
        return "–"
    return "<.0001" if p < 1e-4 else "1" if p > 0.99995 else f"{p:.4f}"[1:]


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"


def _signed(percent: float) -> str:
    return "–" if isnan(percent) else f"{percent:+.2f}"


def _alarms(analysis: Analysis) -> Iterator[str]:
    ratio, aa = analysis.sample_ratio, analysis.aa
    if ratio.alarm:
        yield (
            f"Sample ratio: users are not split as intended (p {_p(ratio.p)}): find out why "
            "before you trust a lift."
        )
    if aa.alarm:
        worst = max(aa.below, key=lambda name: aa.below[name])
        yield (
            f"A/A: halves of the control differ in '{worst}' {_share(aa.below[worst])} of the time "
            f"instead of 5 %: do not trust the p-values."
        )


def _lines(analysis: Analysis) -> Iterator[str]:
    ratio, aa = analysis.sample_ratio, analysis.aa
    users = ", ".join(f"{arm} {n:,}" for arm, n in ratio.users.items())
    yield f"{analysis.rows:,} rows; means per {analysis.per}; users: {users}."
    if not ratio.alarm:
        yield f"Sample ratio: as intended (p {_p(ratio.p)})."
    if not aa.alarm:
        shares = ", ".join(f"{name} {_share(share)}" for name, share in aa.below.items())
        yield f"A/A: p < .05 in {shares} of {aa.splits} halvings of the control; 5 % is due."
    if analysis.aa_arm is not None:
        yield f"'{analysis.aa_arm}' is the same as the control: its lifts are chance."
    yield from _left_out(analysis)
    yield "*: holds after Holm's adjustment for all lifts. Detects: lift found 4 times of 5."


def _left_out(analysis: Analysis) -> Iterator[str]:
    if analysis.crossed_users:
        yield f"{analysis.crossed_users:,} users were seen in two arms and are left out."
    if analysis.skipped_rows:
        yield f"{analysis.skipped_rows:,} rows have no user or no arm and are left out."


def ab_page(analysis: Analysis, run: Run) -> str:
    """Return one HTML page with the lifts and their intervals as charts."""
    lead = (
        f"Mean outcome per {analysis.per} over that of {analysis.control}, in percent; whiskers "
        f"are {100 * analysis.level:g} % intervals by the delta method, users being the unit. "
        "Detectable is the lift that a test would find four times out of five; Holm's p-value "
        "allows for the number of lifts looked at."
    )
    plots = tuple(_chart(analysis, name) for name in analysis.outcomes)
    parts = [
        Section("lifts", "Lifts", lead, plots, (_lift_table(analysis),), tuple(_alarms(analysis))),
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
        ("Sample ratio", "ALARM" if ratio.alarm else "as intended", f"p {_p(ratio.p)}"),
        ("A/A check", "ALARM" if analysis.aa.alarm else "passed", f"{analysis.aa.splits} splits"),
    ]


def _lift_table(analysis: Analysis) -> Table:
    columns = ("arm", "outcome", "mean", "lift %", "low", "high", "p", "p (Holm)", "detectable %")
    rows = tuple(
        (
            *(x.arm, x.outcome, analysis.mean(x.arm, x.outcome).mean, x.lift, x.low, x.high),
            *(x.p, x.p_holm, x.detectable),
        )
        for x in analysis.lifts
    )
    formats = dict.fromkeys(("lift %", "low", "high"), "+.2f") | {"mean": ".5g"}
    return Table(columns, rows, formats | {"p": ".2g", "p (Holm)": ".2g", "detectable %": ".2f"})


def _chart(analysis: Analysis, outcome: str) -> Plot:
    lifts = _of(analysis, outcome)
    known = [lift for lift in lifts if not isnan(lift.low)]
    dots: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [lift.lift for lift in known],
        "y": [lift.arm for lift in known],
        "error_x": {
            "type": "data",
            "array": [lift.high - lift.lift for lift in known],
            "arrayminus": [lift.lift - lift.low for lift in known],
            "thickness": 2,
            "width": 5,
        },
        "marker": {
            "size": 11,
            "color": [MUTED if lift.arm == analysis.aa_arm else ACCENT for lift in known],
        },
        "hovertemplate": "%{y}<br>lift %{x:.2f} %<extra></extra>",
    }
    zero = {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper"}
    return plot(
        f"lift-{outcome}",
        outcome,
        [dots],
        Table(
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
            Table(("arm", "users", "intended", "seen"), users, {"intended": ".2%", "seen": ".2%"}),
            Table(
                ("outcome", "p < .05 in A/A", "usual from", "to"),
                halves,
                dict.fromkeys(("p < .05 in A/A", "usual from", "to"), ".1%"),
            ),
        ),
        notes=tuple(_left_out(analysis)),
    )
