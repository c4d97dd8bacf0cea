"""`harmonrank evaluate`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.options import numbers, parse_pairs, weights


@click.command("evaluate")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@weights
@numbers
def command(
    model: Path, data: Path, weights: str | None, json_file: str | None, quiet: bool
) -> None:
    """Measure how well MODEL ranks DATA, a table that has labels."""
    from harmonrank.cli.show import Show
    from harmonrank.methods import load
    from harmonrank.reports import quality_table

    fitted = load(model)
    with Show(quiet=quiet, json_file=json_file) as show:
        quality = fitted.evaluate(data, weights=parse_pairs(weights))
    show.result(quality_table(quality), {"method": fitted.name, **quality.to_dict()})
