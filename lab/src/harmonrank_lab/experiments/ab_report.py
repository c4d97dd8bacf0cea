"""An experiment's analysis as a table, in sentences, and as one HTML page."""

__all__ = ["ab_page", "ab_table"]

from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from typing import Any, Literal

from harmonrank.reports import Card, Run, Section, page
from harmonrank.reports.plots import ACCENT, MUTED, PALETTE, Plot, plot, scatter, upright, whiskers
from harmonrank.support import Cell, Column, Style, Table, table_of
from harmonrank_lab.experiments.ab import Analysis, Lift

Scale = Literal["relative", "absolute"]
_STYLES: dict[str, Style] = {"better": "green", "worse": "red", "A/A": "dim"}

_ROW = 30


_COLORS = {"better": PALETTE[2], "worse": PALETTE[5], "unclear": ACCENT, "A/A": MUTED}


def ab_table(analysis: Analysis, scale: Scale = "relative") -> Table:
    """Return a row per outcome and arm: both means, lift, interval, p-values, verdict.

    Args:
        analysis: What an experiment's log says.
        scale: Lifts in percent of the control's mean, or changes in the unit of the outcome.
    """
    number = "+.2f" if scale == "relative" else "+.3g"
    columns = (
        *(Column("arm"), Column("outcome"), Column("control", ".4g"), Column("mean", ".4g")),
        Column("lift %" if scale == "relative" else "change", number),
        Column(f"{100 * analysis.level:g} % interval", align="right"),
        *(Column("p"), Column("p (Holm)", spare=True)),
        *(Column("detects", number.strip("+"), spare=True), Column("verdict")),
    )
    lifts = [lift for name in analysis.outcomes for lift in lifts_of(analysis, name)]
    styles = {i: _STYLES[x.verdict] for i, x in enumerate(lifts) if x.verdict in _STYLES}
    said, lines = tuple(alarms(analysis)), tuple(_lines(analysis))
    rows = tuple(_row(analysis, lift, scale, number) for lift in lifts)
    title = "\n".join(verdicts(analysis))
    return Table(columns, rows, title, emphasis=styles, alarms=said, notes=lines)


def _row(analysis: Analysis, lift: Lift, scale: Scale, number: str) -> tuple[Any, ...]:
    value, low, high = scaled(lift, scale)
    control = analysis.mean(analysis.control, lift.outcome).mean
    return (
        lift.arm,
        Cell(lift.outcome, mark="↓" * (lift.outcome in analysis.unwanted)),
        control,
        analysis.mean(lift.arm, lift.outcome).mean,
        Cell(value, mark="*" * (lift.p_holm < 1 - analysis.level)),
        Cell(low, f"{_signed(low, number)} … {_signed(high, number)}"),
        *(Cell(p, p_text(p)) for p in (lift.p, lift.p_holm)),
        lift.detectable if scale == "relative" else lift.detectable / 100 * control,
        lift.verdict,
    )


def scaled(lift: Lift, scale: Scale) -> tuple[float, float, float]:
    """Return a lift with the ends of its interval, or the change that it is."""
    if scale == "relative":
        return lift.lift, lift.low, lift.high
    return lift.change, lift.change_low, lift.change_high


def verdicts(analysis: Analysis) -> Iterator[str]:
    """Yield a sentence per arm: which outcomes are better, which worse, which unclear."""
    for arm in analysis.arms:
        lifts = [lift for lift in analysis.lifts if lift.arm == arm and lift.verdict != "A/A"]
        parts = [
            f"{len(names)} {word} ({', '.join(names)})"
            for word in ("better", "worse", "unclear")
            if (names := [lift.outcome for lift in lifts if lift.verdict == word])
        ]
        if parts:
            yield f"{arm} against {analysis.control}: {', '.join(parts)}."


def lifts_of(analysis: Analysis, outcome: str) -> list[Lift]:
    """Return the lifts of one outcome, an arm each."""
    return [lift for lift in analysis.lifts if lift.outcome == outcome]


def p_text(p: float) -> str:
    """Return a p-value in four digits.

    >>> p_text(0.02567), p_text(1e-9), p_text(1.0)
    ('.0257', '<.0001', '1')
    """
    if isnan(p):
        return "–"
    return "<.0001" if p < 1e-4 else "1" if p > 0.99995 else f"{p:.4f}"[1:]


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"


def _signed(value: float, number: str) -> str:
    return "–" if isnan(value) else format(value, number)


def alarms(analysis: Analysis) -> Iterator[str]:
    """Yield what forbids to trust the lifts."""
    ratio, aa = analysis.sample_ratio, analysis.aa
    if ratio.alarm:
        yield (
            f"Sample ratio: users are not split as intended (p {p_text(ratio.p)}): find out why "
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
        yield f"Sample ratio: as intended (p {p_text(ratio.p)})."
    if not aa.alarm:
        shares = ", ".join(f"{name} {_share(share)}" for name, share in aa.below.items())
        yield f"A/A: p < .05 in {shares} of {aa.splits} halvings of the control; 5 % is due."
    if analysis.aa_arm is not None:
        yield f"'{analysis.aa_arm}' is the same as the control: its lifts are chance."
    yield from left_out(analysis)
    yield "*: holds after Holm's adjustment for all lifts. Detects: what is found 4 times of 5."
    if analysis.unwanted:
        yield f"↓: less is better ({', '.join(analysis.unwanted)})."


def left_out(analysis: Analysis) -> Iterator[str]:
    """Yield what was not counted."""
    if analysis.crossed_users:
        yield f"{analysis.crossed_users:,} users were seen in two arms and are left out."
    if analysis.skipped_rows:
        yield f"{analysis.skipped_rows:,} rows have no user or no arm and are left out."


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
    told = Section("lifts", "Lifts", lead, plots, (lifts,), tuple(alarms(analysis)))
    parts = [told, _checks(analysis)]
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
    form = "{0.outcome}" if len(analysis.arms) == 2 else "{0.outcome}, {0.arm}"
    form = "{0.arm}" if len(outcomes) == 1 else form
    named = [(form.format(x), x.verdict, *scaled(x, scale)) for x in lifts]
    unit = "lift %" if scale == "relative" else "change"
    over = "lift over {} (%)" if scale == "relative" else "mean minus that of {}"
    number, numbers = "+.2f" if scale == "relative" else "+.3g", (unit, "low", "high")
    columns = ("arm" if len(outcomes) == 1 else "outcome, arm", "verdict", *numbers)
    return plot(
        f"lift-{title}",
        title,
        [_dots(named, unit)],
        table_of(columns, named, dict.fromkeys(numbers, number)),
        x={"title": over.format(analysis.control)},
        y={"autorange": "reversed", "showgrid": False, "type": "category"},
        height=110 + _ROW * len(lifts),
        wide=len(outcomes) > 1,
        showlegend=False,
        shapes=[upright(0, color=MUTED, width=1, dash="dot")],
    )


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
    total = sum(ratio.users.values())
    users = [(arm, seen, ratio.intended[arm], seen / total) for arm, seen in ratio.users.items()]
    halves = tuple((name, share, *aa.usual) for name, share in aa.below.items())
    lead = (
        "A split that is not as intended, or halves of one arm that differ too often, says that "
        "something is wrong with the experiment or its log, whatever the lifts are. "
        f"The users of {analysis.control} were halved {aa.splits} times by another hash; by chance "
        "one p-value in twenty falls below .05."
    )
    formats = {"intended": ".2%", "seen": ".2%"}
    split = table_of(("arm", "users", *formats), users, formats)
    formats = dict.fromkeys(("p < .05 in A/A", "usual from", "to"), ".1%")
    tables = (split, table_of(("outcome", *formats), halves, formats))
    return Section("checks", "Checks", lead, tables=tables, notes=tuple(left_out(analysis)))
