"""`harmonrank lab ab`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts import (
    Show,
    Tables,
    format_option,
    parse_names,
    parse_pairs,
    report_option,
    shown,
    table_argument,
)
from harmonrank.support.errors import UsageError
from harmonrank_lab.cli.ab_simulate import simulate_command


@click.group("ab")
def command() -> None:
    """Analyse an online experiment, or simulate one."""


command.add_command(simulate_command)


@command.command("analyse")
@table_argument("log")
@click.option("--outcomes", required=True, metavar="A,B", help="Columns to compare.")
@click.option("--unwanted", metavar="A,B", help="Outcomes of which less is better.")
@click.option("--user", default="user_id", show_default=True, metavar="A", help="User column.")
@click.option("--arm", default="arm", show_default=True, metavar="A", help="Arm column.")
@click.option(
    "--control",
    metavar="ARM",
    help="What lifts are measured against; base or control if there is one, else the first.",
)
@click.option(
    "--split", metavar="A=1,B=1", help="Users that each arm was meant to get; equal if not given."
)
@click.option("--aa", "aa_arm", metavar="ARM", help="An arm that is the same as the control.")
@click.option(
    "--per",
    type=click.Choice(["impression", "user"]),
    default="impression",
    show_default=True,
    help="What a mean is a mean of.",
)
@click.option(
    "--impressions", metavar="A", help="Column of how many impressions a row stands for; else 1."
)
@click.option(
    "--scale",
    type=click.Choice(["relative", "absolute"]),
    default="relative",
    show_default=True,
    help="Lifts in percent, or changes in the unit of the outcome.",
)
@click.option("--common-axis", is_flag=True, help="One chart of all outcomes on the page.")
@report_option
@format_option
@shown
def analyse_command(
    log: Tables,
    outcomes: str,
    unwanted: str | None,
    user: str,
    arm: str,
    control: str | None,
    split: str | None,
    aa_arm: str | None,
    per: str,
    impressions: str | None,
    scale: Any,
    common_axis: bool,
    report: Path | None,
    style: str,
    show: Show,
) -> None:
    """Compare the arms of the experiment in LOG.

    LOG is parquet, csv or arrow with a row per impression: who saw it, in which arm, and what
    came of it. Users are the unit: intervals are by the delta method on their sums.
    """
    from harmonrank.reports.facts import run_of
    from harmonrank.reports.html import check_page, write_page
    from harmonrank_lab.experiments.ab import analyse
    from harmonrank_lab.experiments.ab_report import ab_page, ab_table

    if common_axis and report is None:
        raise UsageError("--common-axis serves the page alone; add --report FILE.")
    check_page(report)
    analysis = analyse(
        log,
        user=user,
        arm=arm,
        outcomes=parse_names(outcomes),
        unwanted=parse_names(unwanted or ""),
        control=control,
        split=parse_pairs(split, "--split"),
        per=per,
        impressions=impressions,
        aa_arm=aa_arm,
    )
    if report is not None:
        write_page(ab_page(analysis, run_of(), scale=scale, common_axis=common_axis), report)
        show.line(f"Report: {report}")
    show.result(ab_table(analysis, scale), analysis.to_dict(), style=style)
