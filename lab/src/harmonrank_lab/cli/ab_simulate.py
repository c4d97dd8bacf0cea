"""`harmonrank lab ab simulate`."""

__all__ = ["simulate_command"]

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harmonrank.cli.parts import Show, count_option, format_option, output, seed_option, shown
from harmonrank.support.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.support.table import Table
    from harmonrank_lab.experiments.online import OnlineResult

_CONTROL = "current"


@click.command("simulate")
@click.argument("world")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--at", "points", multiple=True, required=True, metavar="NAME",
    help="An operating point of the model, which gets an arm; may be repeated.",
)  # fmt: skip
@count_option("--users", 20_000, "Split evenly among the arms.")
@count_option("--days", 1)
@count_option("--hours", 24, "Of a day.")
@count_option("--requests", 1_000, "Of an hour.")
@count_option("-k", 5, "Shown of the 20 candidates of a request.")
@seed_option
@output("Log to write: parquet, csv or arrow, as `ab analyse` reads it.", required=False)
@format_option
@shown
def simulate_command(
    world: str,
    model: Path,
    points: tuple[str, ...],
    users: int,
    days: int,
    hours: int,
    requests: int,
    k: int,
    seed: int,
    out: Path | None,
    overwrite: bool,
    style: str,
    show: Show,
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
    result = run_online(
        world,
        users=users,
        days=days,
        hours=hours,
        requests_per_hour=requests,
        top_k=k,
        seed=seed,
        arms=arms,
        progress=lambda done: show.advance("hours ", done.hour + 1, done.hours),
    )
    if out is not None and result.log is not None:
        write_table(result.log, out, overwrite=overwrite)
        show.line(f"Log: {out}")
    show.result(_table(result), result.to_dict(), style=style)


def _table(result: "OnlineResult") -> "Table":
    """Return a row per arm and outcome: the lift as measured, and by true chance."""
    from harmonrank.support.table import Column, Table

    columns = (
        Column("arm"),
        Column("outcome"),
        Column("lift %", "+.2f"),
        Column("95 % interval", align="right"),
        Column("exact lift %", "+.2f"),
        Column("verdict"),
    )
    rows = tuple(
        (
            lift.arm,
            lift.outcome,
            lift.lift,
            f"{lift.low:+.2f} … {lift.high:+.2f}",
            result.exact_lift(lift.arm, lift.outcome).lift,
            lift.verdict,
        )
        for lift in result.analysis.lifts
        if lift.verdict != "A/A"
    )
    note = f"{result.requests:,} requests in {result.world}; lifts over '{_CONTROL}'."
    return Table(columns, rows, notes=(note,))
