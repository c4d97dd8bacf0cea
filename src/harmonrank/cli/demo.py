"""`harmonrank demo`."""

__all__ = ["command"]

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from harmonrank.cli.options import numbers, output


@click.command("demo")
@click.option("--world", default="conflict", show_default=True, help="elive, qkvideo or conflict.")
@click.option(
    "--rows", type=click.IntRange(1000), default=200_000, show_default=True, help="Training rows."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    help="Keep the world's files in this folder.",
)
@output
@numbers
def command(
    world: str,
    rows: int,
    seed: int,
    out: Path | None,
    overwrite: bool,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Do the main job on a built-in world: simulate a log, fit every method, compare.

    A world knows the best possible result, so the leaderboard shows how far from it each
    method stays.
    """
    from harmonrank.cli.show import Show
    from harmonrank.data import Schema
    from harmonrank.data.files import check_output
    from harmonrank.data.worlds import world as find_world
    from harmonrank.evaluation import compare, simulate
    from harmonrank.evaluation.simulation import SCHEMA
    from harmonrank.methods import METHODS
    from harmonrank.reports import leaderboard_table

    place = find_world(world)
    if out is not None:
        check_output(out, overwrite=overwrite, holds=SCHEMA)
    with TemporaryDirectory() as scratch, Show(quiet=quiet, json_file=json_file) as show:
        folder = out or Path(scratch) / "world"
        show.line(f"Simulating {rows:,} training rows of the world '{world}'.")
        simulate(place, rows, folder, seed=seed, overwrite=overwrite)
        board = compare(
            folder / "train.parquet",
            folder / "test.parquet",
            Schema.read(folder / SCHEMA),
            METHODS,
            valid=folder / "valid.parquet",
            seed=seed,
            on_event=show.event,
        )
    show.result(leaderboard_table(board), board.to_dict())
