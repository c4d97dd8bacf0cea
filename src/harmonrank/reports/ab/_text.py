"""An experiment's analysis in words: for a terminal of 80 columns, and as Markdown."""

__all__ = ["ab_markdown", "ab_table", "alarms", "left_out", "lifts_of", "p_text"]

from collections.abc import Iterator
from math import isnan

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harmonrank.evaluation.ab import Analysis, Lift
from harmonrank.reports.markdown import markdown_table

_NAME = 13


def ab_table(analysis: Analysis) -> RenderableType:
    """Return a row per arm and outcome: mean, lift, interval, p-value, detectable lift."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    for column in ("arm", "outcome"):
        table.add_column(column, no_wrap=True, max_width=_NAME)
    for column in ("mean", "lift %", _interval(analysis), "p", "detects"):
        table.add_column(column, justify="right", no_wrap=True)
    for name in analysis.outcomes:
        mean = analysis.mean(analysis.control, name).mean
        table.add_row(analysis.control, name, f"{mean:.4g}", style="dim")
        for lift in lifts_of(analysis, name):
            table.add_row(lift.arm, name, *_cells(analysis, lift))
    warned = [Text(line, style="bold red") for line in alarms(analysis)]
    return Group(table, *warned, *(Text(line, style="dim") for line in _lines(analysis)))


def ab_markdown(analysis: Analysis) -> str:
    """Return the same as a Markdown table."""
    head = ["arm", "outcome", "mean", "lift %", _interval(analysis), "p", "detects"]
    rows = []
    for name in analysis.outcomes:
        mean = analysis.mean(analysis.control, name).mean
        rows.append([analysis.control, name, f"{mean:.4g}", "", "", "", ""])
        rows += [[lift.arm, name, *_cells(analysis, lift)] for lift in lifts_of(analysis, name)]
    notes = [f"**{line}**" for line in alarms(analysis)] + list(_lines(analysis))
    return "\n\n".join([markdown_table(head, rows, texts=2), "  \n".join(notes)])


def lifts_of(analysis: Analysis, outcome: str) -> list[Lift]:
    """Return the lifts of one outcome, an arm each."""
    return [lift for lift in analysis.lifts if lift.outcome == outcome]


def _cells(analysis: Analysis, lift: Lift) -> list[str]:
    sure = "*" if lift.p_holm < 1 - analysis.level else " "
    return [
        f"{analysis.mean(lift.arm, lift.outcome).mean:.4g}",
        _signed(lift.lift) + sure,
        f"{_signed(lift.low)} … {_signed(lift.high)}",
        p_text(lift.p),
        "–" if isnan(lift.detectable) else f"{lift.detectable:.2f}",
    ]


def _interval(analysis: Analysis) -> str:
    return f"{100 * analysis.level:g} % interval"


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
