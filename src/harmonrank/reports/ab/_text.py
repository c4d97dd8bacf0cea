"""An experiment's analysis: one table, and what to know of it."""

__all__ = ["ab_table", "alarms", "left_out", "lifts_of", "p_text"]

from collections.abc import Iterator
from math import isnan
from typing import Any

from harmonrank.evaluation.ab import Analysis, Lift
from harmonrank.table import Cell, Column, Style, Table


def ab_table(analysis: Analysis) -> Table:
    """Return a row per arm and outcome: mean, lift, interval, p-values, detectable lift."""
    columns = (
        Column("arm", least=9),
        Column("outcome", least=9),
        Column("mean", ".4g"),
        Column("lift %", "+.2f"),
        Column(f"{100 * analysis.level:g} % interval", align="right"),
        Column("p"),
        Column("p (Holm)", spare=True),
        Column("detects", ".2f"),
    )
    rows: list[tuple[Any, ...]] = []
    emphasis: dict[int, Style] = {}
    for name in analysis.outcomes:
        emphasis[len(rows)] = "dim"
        rows.append((analysis.control, name, analysis.mean(analysis.control, name).mean, *[""] * 5))
        rows += [_row(analysis, lift) for lift in lifts_of(analysis, name)]
    said, lines = tuple(alarms(analysis)), tuple(_lines(analysis))
    return Table(columns, tuple(rows), emphasis=emphasis, alarms=said, notes=lines)


def _row(analysis: Analysis, lift: Lift) -> tuple[Any, ...]:
    return (
        lift.arm,
        lift.outcome,
        analysis.mean(lift.arm, lift.outcome).mean,
        Cell(lift.lift, mark="*" * (lift.p_holm < 1 - analysis.level)),
        Cell(lift.low, f"{_signed(lift.low)} … {_signed(lift.high)}"),
        *(Cell(p, p_text(p)) for p in (lift.p, lift.p_holm)),
        lift.detectable,
    )


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


def _signed(percent: float) -> str:
    return "–" if isnan(percent) else f"{percent:+.2f}"


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
    yield "*: holds after Holm's adjustment for all lifts. Detects: lift found 4 times of 5."


def left_out(analysis: Analysis) -> Iterator[str]:
    """Yield what was not counted."""
    if analysis.crossed_users:
        yield f"{analysis.crossed_users:,} users were seen in two arms and are left out."
    if analysis.skipped_rows:
        yield f"{analysis.skipped_rows:,} rows have no user or no arm and are left out."
