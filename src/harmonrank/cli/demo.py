"""`harmonrank demo`."""

__all__ = ["command"]

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from harmonrank.cli.options import count_option, numbers, output, reports, seed_option

if TYPE_CHECKING:
    from harmonrank.cli.show import Show

_PAGE = Path("harmonrank-demo.html")


@click.command("demo")
@click.option("--world", default="conflict", show_default=True, help="As of `harmonrank simulate`.")
@count_option("--rows", 50_000, "Training rows.", least=1000)
@seed_option
@output("Keep the world's files in this folder.", required=False)
@reports
@click.option("--no-report", is_flag=True, help="Write no page.")
@numbers
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
    json_file: str | None,
    quiet: bool,
) -> None:
    """Do the main job on a built-in world: simulate a log, fit every method, compare.

    A world knows the best possible result, so the leaderboard shows how far from it each
    method stays. A page with charts is written too, harmonrank-demo.html unless --report names
    another file.
    """
    from harmonrank.cli.reporting import Reporting
    from harmonrank.cli.show import Show
    from harmonrank.data import Schema, read_log
    from harmonrank.data.files import check_output
    from harmonrank.evaluation import compare, simulate
    from harmonrank.evaluation.simulation import SCHEMA
    from harmonrank.evaluation.worlds import world as find_world

    place = find_world(world)
    if out is not None:
        check_output(out, overwrite=overwrite, holds=SCHEMA)
    with TemporaryDirectory() as scratch, Show(quiet=quiet, json_file=json_file) as show:
        reporting = Reporting(_page(report, no_report, show), figures, show)
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


def _page(report: Path | None, no_report: bool, show: "Show") -> Path | None:
    """Return where the page goes; a page that nobody asked for is no reason to fail."""
    if no_report or report is not None:
        return None if no_report else report
    if find_spec("plotly") is None:
        show.line("No page with charts is written; pip install 'harmonrank[report]' adds it.")
        return None
    return _PAGE
