"""An experiment's analysis: one table, and what to know of it."""

__all__ = [
    "Scale",
    "ab_table",
    "alarms",
    "left_out",
    "lifts_of",
    "p_text",
    "scaled",
    "verdicts",
]

from collections.abc import Iterator
from math import isnan
from typing import Any, Literal

from harmonrank.support.table import Cell, Column, Style, Table
from harmonrank_lab.experiments.ab import Analysis, Lift

Scale = Literal["relative", "absolute"]
_STYLES: dict[str, Style] = {"better": "green", "worse": "red", "A/A": "dim"}


def ab_table(analysis: Analysis, scale: Scale = "relative") -> Table:
    """Return a row per outcome and arm: both means, lift, interval, p-values, verdict.

    Args:
        analysis: What an experiment's log says.
        scale: Lifts in percent of the control's mean, or changes in the unit of the outcome.
    """
    number = "+.2f" if scale == "relative" else "+.3g"
    columns = (
        Column("arm"),
        Column("outcome"),
        Column("control", ".4g"),
        Column("mean", ".4g"),
        Column("lift %" if scale == "relative" else "change", number),
        Column(f"{100 * analysis.level:g} % interval", align="right"),
        Column("p"),
        Column("p (Holm)", spare=True),
        Column("detects", number.strip("+"), spare=True),
        Column("verdict"),
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
        found = [lift for lift in analysis.lifts if lift.arm == arm and lift.verdict != "A/A"]
        parts = [
            f"{len(names)} {word} ({', '.join(names)})"
            for word in ("better", "worse", "unclear")
            if (names := [lift.outcome for lift in found if lift.verdict == word])
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
