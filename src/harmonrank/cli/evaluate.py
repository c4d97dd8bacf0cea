"""`harmonrank evaluate`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.options import numbers, parse_pairs, reports, weights


@click.command("evaluate")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@weights
@reports
@numbers
def command(
    model: Path,
    data: Path,
    weights: str | None,
    report: Path | None,
    figures: Path | None,
    style: str,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Measure how well MODEL ranks DATA, a table that has labels."""
    from dataclasses import asdict

    from harmonrank.cli.reporting import Reporting
    from harmonrank.cli.show import Show
    from harmonrank.methods import load
    from harmonrank.reports import quality_markdown, quality_table

    fitted = load(model)
    with Show(quiet=quiet, json_file=json_file) as show:
        reporting = Reporting(report, figures, show)
        quality = fitted.evaluate(data, weights=parse_pairs(weights))
        reporting.evaluated(f"{fitted.name} on {data.name}", fitted, quality, data)
        shifts = fitted.shifts(data)
    for shift in shifts:
        if shift.far:
            click.echo(f"Note: {shift}", err=True)
    shown = quality_table if style == "table" else quality_markdown
    show.result(
        shown(quality),
        {
            "method": fitted.name,
            **quality.to_dict(),
            "shifts": [asdict(shift) for shift in shifts],
        },
    )
