"""`harmonrank evaluate`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.options import as_is, numbers, parse_pairs, reports, weights
from harmonrank.errors import UsageError


@click.command("evaluate")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@weights
@as_is
@click.option(
    "--train",
    type=click.Path(path_type=Path),
    help="Table that it was fitted on; the page then shows how scores have drifted since.",
)
@reports
@numbers
def command(
    model: Path,
    data: Path,
    weights: str | None,
    as_is: bool,
    train: Path | None,
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
    from harmonrank.data import read_log
    from harmonrank.methods import load
    from harmonrank.methods.shift import shift_notes

    if train is not None and report is None and figures is None:
        raise UsageError("--train serves the page alone; add --report FILE.")
    fitted = load(model)
    with Show(quiet=quiet, json_file=json_file) as show:
        reporting = Reporting(report, figures, show)
        log, named = read_log(data, fitted.schema), parse_pairs(weights)
        shifts, replaced = fitted.shifts(log), [] if as_is else fitted.replaced(log)
        notes = shift_notes(shifts, replaced)
        quality = plain = fitted.evaluate(log, weights=named, adapt=False)
        if replaced:
            quality = fitted.evaluate(log, weights=named)
            fitted = fitted.adapted(log)
            notes.append(
                f"With all scores read as at the fit, AUC-sum is {plain.auc_sum.estimate:.4f}."
            )
        title = f"{fitted.name} on {data.name}"
        reporting.evaluated(title, fitted, quality, data, train=train, caveats=notes)
    for note in notes:
        click.echo(f"Note: {note}", err=True)
    show.result(
        quality.to_table(),
        {
            "method": fitted.name,
            **quality.to_dict(),
            "shifts": [asdict(shift) for shift in shifts],
            "adapted": list(dict.fromkeys(shift.column for shift in replaced)),
            "auc_sum_as_is": plain.auc_sum.estimate,
        },
        style=style,
    )
