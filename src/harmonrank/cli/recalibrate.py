"""`harmonrank recalibrate`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.options import output


@click.command("recalibrate")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@output("Folder of the new model.")
def command(model: Path, data: Path, out: Path, overwrite: bool) -> None:
    """Write MODEL again for upstream scores that have changed.

    DATA holds recent rows with the new scores; labels are not needed. Use it when an upstream
    model was replaced, and fit again once enough labels have come in.
    """
    from harmonrank.errors import UsageError
    from harmonrank.methods import load
    from harmonrank.methods.harmonrank import HarmonRank

    fitted = load(model)
    if not isinstance(fitted, HarmonRank):
        raise UsageError(
            f"{fitted.name} cannot be recalibrated without labels; only harmonrank can."
        )
    fitted.recalibrate(data).save(out, overwrite=overwrite)
    click.echo(f"Recalibrated on {data}; wrote {out}.")
