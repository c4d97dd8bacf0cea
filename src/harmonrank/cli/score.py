"""`harmonrank score`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.options import as_is, numbers, output, parse_pairs, weights


@click.command("score")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@output("Table to write: parquet, csv or arrow.")
@click.option("--column", default="fused", show_default=True, help="Name of the new column.")
@weights
@as_is
@numbers
def command(
    model: Path,
    data: Path,
    out: Path,
    column: str,
    weights: str | None,
    as_is: bool,
    overwrite: bool,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Write DATA with the fused score of MODEL as one more column; rows stay in order."""
    from time import perf_counter

    from harmonrank.cli.show import Show
    from harmonrank.methods import load
    from harmonrank.methods.scoring import score_file

    fitted = load(model)
    with Show(quiet=quiet, json_file=json_file) as show:
        started = perf_counter()
        rows = score_file(
            fitted,
            data,
            out,
            column=column,
            weights=parse_pairs(weights),
            adapt=not as_is,
            overwrite=overwrite,
            on_note=lambda note: click.echo(f"Note: {note}", err=True),
            on_rows=lambda done, total: show.advance("score ", done, total, f"{done:,} rows"),
        )
        seconds = perf_counter() - started
    show.result(
        f"Scored {rows:,} rows in {seconds:.1f} s; wrote {out}.",
        {"rows": rows, "seconds": seconds, "output": str(out), "column": column},
    )
