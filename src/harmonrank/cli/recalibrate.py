"""`harmonrank recalibrate`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.options import model_to


@click.command("recalibrate")
@model_to("Folder of the new model.")
def command(
    model: Path, data: Path, out: Path, overwrite: bool, json_file: str | None, quiet: bool
) -> None:
    """Write MODEL again for upstream scores that have changed.

    DATA holds recent rows with the new scores; labels are not needed. Use it when an upstream
    model was replaced, and fit again once enough labels have come in. The report says how far each
    score has moved, and whether that looks like a replaced model.
    """
    from harmonrank.cli.show import Show
    from harmonrank.data.files import check_output
    from harmonrank.methods import load
    from harmonrank.methods.saved import MODEL

    check_output(out, overwrite=overwrite, holds=MODEL)
    fitted = load(model)
    with Show(quiet=quiet, json_file=json_file) as show:
        drift = fitted.drift(data)
        fitted.recalibrated(data).save(out, overwrite=overwrite)
        show.line(f"Recalibrated {fitted.name} on {drift.rows:,} rows of {data}; wrote {out}.")
    show.result(drift.to_table(), {"method": fitted.name, "model": str(out), **drift.to_dict()})
