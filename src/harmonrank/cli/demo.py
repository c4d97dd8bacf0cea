"""`harmonrank demo`."""

__all__ = ["command"]

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from harmonrank.cli.parts.options import (
    Show,
    count_option,
    format_option,
    output,
    report_option,
    seed_option,
    shown,
)
from harmonrank.cli.parts.verb import setting, verb

_PAGE = Path("harmonrank-demo.html")


@verb(
    "demo",
    example="harmonrank demo",
)
@click.option("--world", default="conflict", show_default=True, help="As of `harmonrank simulate`.")
@count_option("--rows", 50_000, "Training rows.", least=1000)
@seed_option
@output("Keep the world's files in this folder.", required=False)
@report_option
@setting("--figures", type=click.Path(path_type=Path), help="Also write each chart as PNG.")
@format_option
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
    from harmonrank.cli.parts.pages import Pages, can_draw
    from harmonrank.data import Schema
    from harmonrank.evaluation import compare
    from harmonrank.support.storage.files import check_output
    from harmonrank.worlds import SCHEMA, simulate
    from harmonrank.worlds import world as find_world

    place = find_world(world)
    if out is not None:
        check_output(out, overwrite=overwrite, holds=SCHEMA)
    if no_report:
        report = None
    elif report is None and can_draw(show):
        report = _PAGE
    pages = Pages(report, figures, show)
    with TemporaryDirectory() as scratch:
        folder = out or Path(scratch) / "world"
        show.line(f"Simulating {rows:,} training rows of the world '{world}'.")
        simulate(place, rows, folder, seed=seed, overwrite=overwrite)
        train, valid, test = (folder / f"{name}.parquet" for name in ("train", "valid", "test"))
        schema = Schema.read(folder / SCHEMA)
        result = compare(
            train, schema, "all", test=test, valid=valid, seed=seed, on_event=show.event
        )
    pages.write(result, title=f"Every fusion on the world ‘{world}’")
    show.result(result.to_table(), result.to_dict(), style=style)
