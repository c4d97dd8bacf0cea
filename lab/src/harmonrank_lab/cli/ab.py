"""`harmonrank lab ab`."""

__all__ = ["command"]

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli import parts
from harmonrank.support import UsageError

if TYPE_CHECKING:
    from harmonrank.support import Table
    from harmonrank_lab.experiments.online import OnlineResult

_CONTROL = "current"


@click.command("simulate", cls=parts.Verb)
@click.argument("world")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--at", "points", multiple=True, required=True, metavar="NAME",
    help="An operating point of the model, which gets an arm; may be repeated.",
)  # fmt: skip
@parts.count_option("--users", 20_000, "Split evenly among the arms.")
@parts.setting("--days", type=parts.whole(), default=1, help="Days of the experiment.")
@parts.count_option("--hours", 24, "Of a day.")
@parts.count_option("--requests", 1_000, "Of an hour.")
@parts.count_option("-k", 5, "Shown of the 20 candidates of a request.")
@parts.seed_option
@parts.output("Log to write: parquet, csv or arrow, as `ab analyse` reads it.", required=False)
@parts.format_setting
@parts.shown
def simulate_command(
    world: str,
    model: Path,
    points: tuple[str, ...],
    requests: int,
    k: int,
    out: Path | None,
    overwrite: bool,
    style: str,
    show: parts.Show,
    **size: int,
) -> None:
    """Try operating points of MODEL on a simulated platform, before anyone sees them.

    WORLD is a world with the columns of MODEL. The arm `current` ranks with the weights of the
    model, each other one with those of a point; none of them learns. The table shows what the
    experiment measures, and beside it the lift by true chance, which only a simulation knows.
    """
    from harmonrank import load
    from harmonrank.data.reading import file_kind
    from harmonrank.fusion import write_table
    from harmonrank.support.storage import check_output
    from harmonrank_lab.experiments.online import run_online

    fitted = load(model)
    arms = {_CONTROL: fitted, **{point: fitted.at(point) for point in points}}
    if len(arms) <= len(points):
        raise UsageError(
            f"--at must name different points, none of them '{_CONTROL}'. Got {', '.join(points)}."
        )
    if out is not None:
        file_kind(out)
        check_output(out, overwrite=overwrite)
    size |= {"requests_per_hour": requests, "top_k": k}
    result = run_online(world, arms=arms, progress=show.event, **size)
    if out is not None and result.log is not None:
        write_table(result.log, out, overwrite=overwrite)
        show.line(f"Log: {out}")
    show.result(_table(result), result.to_dict(), style=style)


def _table(result: "OnlineResult") -> "Table":
    """Return a row per arm and outcome: the lift as measured, and by true chance."""
    from harmonrank.support import table_of

    rows = []
    for x in (lift for lift in result.analysis.lifts if lift.verdict != "A/A"):
        interval, exact = f"{x.low:+.2f} … {x.high:+.2f}", result.exact_lift(x.arm, x.outcome).lift
        rows.append((x.arm, x.outcome, x.lift, interval, exact, x.verdict))
    note = f"{result.requests:,} requests in {result.world}; lifts over '{_CONTROL}'."
    columns = ("arm", "outcome", "lift %", "95 % interval", "exact lift %", "verdict")
    return table_of(columns, rows, dict.fromkeys(columns[2:5:2], "+.2f"), notes=(note,))


@click.group("ab")
def command() -> None:
    """Analyse an online experiment, or simulate one."""


command.add_command(simulate_command)


@command.command("analyse", cls=parts.Verb)
@parts.table_argument("log")
@click.option("--outcomes", required=True, metavar="A,B", help="Columns to compare.")
@click.option("--unwanted", metavar="A,B", help="Outcomes of which less is better.")
@click.option("--user", default="user_id", show_default=True, metavar="A", help="User column.")
@click.option("--arm", default="arm", show_default=True, metavar="A", help="Arm column.")
@click.option("--control", metavar="ARM", help="What lifts are measured against. [base or control]")
@click.option("--split", metavar="A=1,B=1", help="Users meant for each arm; equal if left out.")
@click.option("--aa", "aa_arm", metavar="ARM", help="An arm that is the same as the control.")
@parts.setting("--per", type=click.Choice(["impression", "user"]), default="impression",
               help="What a mean is a mean of: impression or user.")  # fmt: skip
@click.option("--impressions", metavar="A", help="Column of a row's impressions; else 1.")
@parts.setting("--scale", type=click.Choice(["relative", "absolute"]), default="relative",
               help="relative, lifts in percent; or absolute, changes in their unit.")  # fmt: skip
@parts.setting(
    "--common-axis", is_flag=True, help="One chart of all outcomes on the page of --report."
)
@parts.report_option
@parts.format_setting
@parts.shown
def analyse_command(
    log: parts.Tables,
    outcomes: str,
    unwanted: str | None,
    split: str | None,
    scale: Any,
    common_axis: bool,
    report: Path | None,
    style: str,
    show: parts.Show,
    **names: Any,
) -> None:
    """Compare the arms of the experiment in LOG.

    LOG is parquet, csv or arrow with a row per impression: who saw it, in which arm, and what
    came of it. Users are the unit: intervals are by the delta method on their sums.
    """
    from harmonrank.reports import check_report, run_of, write_page
    from harmonrank_lab.experiments.ab import analyse
    from harmonrank_lab.experiments.ab_report import ab_page, ab_table

    if common_axis and report is None:
        raise UsageError("common-axis serves the page alone; add --report FILE.")
    check_report(report)
    analysis = analyse(
        log,
        outcomes=parts.parse_names(outcomes),
        unwanted=parts.parse_names(unwanted or ""),
        split=parts.parse_pairs(split, "--split"),
        **names,
    )
    if report is not None:
        write_page(ab_page(analysis, run_of(), scale=scale, common_axis=common_axis), report)
        show.line(f"Report: {report}")
    show.result(ab_table(analysis, scale), analysis.to_dict(), style=style)
