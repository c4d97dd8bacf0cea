"""`harmonrank evaluate`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.options import (
    count_option,
    numbers,
    parse_pairs,
    path_option,
    recalibrate,
    reports,
    value,
    weights,
)
from harmonrank.errors import UsageError


@click.command("evaluate")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@weights
@value
@count_option("-k", 10, "Value at how many of a request, where events have values.", least=1)
@recalibrate
@path_option(
    "--train",
    help="Table that it was fitted on; the page then shows how scores have drifted since.",
)
@reports
@numbers
def command(
    model: Path,
    data: Path,
    weights: str | None,
    value: str | None,
    k: int,
    recalibrate: bool,
    train: Path | None,
    report: Path | None,
    figures: Path | None,
    style: str,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Measure how well MODEL ranks DATA, a table that has labels."""
    from harmonrank.cli.drift_notes import drift_notes, say
    from harmonrank.cli.reporting import Reporting
    from harmonrank.cli.show import Show
    from harmonrank.data import read_log
    from harmonrank.methods import load

    if train is not None and report is None and figures is None:
        raise UsageError("--train serves the page alone; add --report FILE.")
    fitted = load(model)
    with Show(quiet=quiet, json_file=json_file) as show:
        reporting = Reporting(report, figures, show)
        log = read_log(data, fitted.schema)
        counted = {"weights": parse_pairs(weights), "value": parse_pairs(value, "--value"), "k": k}
        drift, quality = fitted.drift(log), fitted.evaluate(log, **counted)
        notes, as_fitted = drift_notes(drift, recalibrated=recalibrate), quality
        if recalibrate:
            fitted = fitted.recalibrated(log)
            quality = fitted.evaluate(log, **counted)
            notes.append(f"As fitted, AUC-sum is {as_fitted.auc_sum.estimate:.4f}.")
        title = f"{fitted.name} on {data.name}"
        reporting.evaluated(title, fitted, quality, log, train=train, caveats=notes)
    say(notes)
    show.result(
        quality.to_table(),
        {
            "method": fitted.name,
            **quality.to_dict(),
            "recalibrated": recalibrate,
            "auc_sum_as_fitted": as_fitted.auc_sum.estimate,
            "drift": drift.to_dict(),
        },
        style=style,
    )
