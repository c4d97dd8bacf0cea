"""`harmonrank simulate`."""

__all__ = ["command"]

from math import isfinite
from pathlib import Path

import click

from harmonrank.cli.options import numbers, output, parse_names


@click.command("simulate")
@click.argument("world")
@click.option(
    "--rows",
    type=click.IntRange(4),
    default=1_000_000,
    show_default=True,
    help="Training rows; valid and test have half as many each.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Draws other rows of the same world.",
)
@click.option("--redraw", type=click.IntRange(0), help="Draws another world of the same kind.")
@click.option("--objectives", metavar="A,B", help="Only these objectives.")
@click.option(
    "--drift",
    type=float,
    default=0.0,
    show_default=True,
    help="How far mean logits move over the log.",
)
@click.option(
    "-o", "--output", "out", required=True, type=click.Path(path_type=Path), help="Folder to write."
)
@output
@numbers
def command(
    world: str,
    rows: int,
    seed: int,
    redraw: int | None,
    objectives: str | None,
    drift: float,
    out: Path,
    overwrite: bool,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Write the log of WORLD (elive, qkvideo or conflict) to a folder.

    The folder holds train.parquet, valid.parquet, test.parquet, schema.toml and ceiling.json.
    """
    from harmonrank.cli.show import Show
    from harmonrank.data.files import check_output
    from harmonrank.data.worlds import world as find_world
    from harmonrank.errors import UsageError
    from harmonrank.evaluation import simulate
    from harmonrank.evaluation.simulation import SCHEMA

    check_output(out, overwrite=overwrite, holds=SCHEMA)
    if not isfinite(drift):
        raise UsageError(f"--drift must be a finite number. Got {drift}.")
    place = find_world(world, redraw=redraw)
    if objectives:
        place = place.subset(parse_names(objectives))
    if drift:
        place = place.drifting(mu_amplitude=drift)
    done = 0
    with Show(quiet=quiet, json_file=json_file) as show:

        def on_table(name: str, count: int) -> None:
            nonlocal done
            done += count
            show.advance("simulate ", done, 2 * rows, f"{name}.parquet")

        summary = simulate(place, rows, out, seed=seed, overwrite=overwrite, on_table=on_table)
    summary["redraw"] = redraw
    show.result(
        f"Wrote {rows:,} training, {rows // 2:,} validation and {rows // 2:,} test rows to {out}.\n"
        f"Best possible AUC-sum on the test rows: {summary['ceiling']:.4f}.",
        summary,
    )
