"""`harmonrank demo`."""

__all__ = ["command"]

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from harmonrank.cli.parts.options import Show, count_option, output, reports, seed_option, shown

_PAGE = Path("harmonrank-demo.html")


@click.command("demo")
@click.option("--world", default="conflict", show_default=True, help="As of `harmonrank simulate`.")
@count_option("--rows", 50_000, "Training rows.", least=1000)
@seed_option
@output("Keep the world's files in this folder.", required=False)
@reports
@click.option("--no-report", is_flag=True, help="Write no page.")
@shown
def command(
    world: str,
    rows: int,
    seed: int,
    out: Path | None,
    overwrite: bool,
    report: Path | None,
    figures: Path | None,
    style: str,
    no_report: bool,
    show: Show,
) -> None:
    """Do the main job on a built-in world: simulate a log, fit every method, compare.

    A world knows the best possible result, so the leaderboard shows how far from it each
    method stays. A page with charts is written too, harmonrank-demo.html unless --report names
    another file.
    """
    from harmonrank.cli.parts.reporting import Reporting, can_draw
    from harmonrank.data import Schema, read_log
    from harmonrank.evaluation import compare
    from harmonrank.support.storage.files import check_output
    from harmonrank.worlds import SCHEMA, simulate
    from harmonrank.worlds import world as find_world

    place = find_world(world)
    if out is not None:
        check_output(out, overwrite=overwrite, holds=SCHEMA)
    with TemporaryDirectory() as scratch:
        if no_report:
            report = None
        elif report is None and can_draw(show):
            report = _PAGE
        reporting = Reporting(report, figures, show)
        folder = out or Path(scratch) / "world"
        show.line(f"Simulating {rows:,} training rows of the world '{world}'.")
        simulate(place, rows, folder, seed=seed, overwrite=overwrite)
        schema = Schema.read(folder / SCHEMA)
        train, valid, test = (
            read_log(folder / f"{name}.parquet", schema) for name in ("train", "valid", "test")
        )
        board = compare(
            train, test, schema, "all", valid=valid, seed=seed, on_event=reporting.event
        )
        title = f"Every fusion on the world ‘{world}’"
        reporting.compared(title, board, train, test, seed)
    show.result(board.to_table(), board.to_dict(), style=style)
