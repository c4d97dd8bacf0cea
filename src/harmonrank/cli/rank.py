"""`harmonrank rank`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.parts.options import (
    Show,
    at_option,
    count_option,
    load_model,
    missing_option,
    output,
    parse_pairs,
    shown,
    value,
    weights,
)
from harmonrank.cli.parts.table_options import Tables, table_argument


@click.command("rank")
@click.argument("model", type=click.Path(path_type=Path))
@table_argument("data")
@count_option("-k", 10, "At most so many rows of a request.", least=1)
@click.option("--request", metavar="A", help="Request column; that of the model if left out.")
@at_option
@weights
@value
@missing_option
@output("Table to write: parquet, csv or arrow.")
@shown
def command(
    model: Path,
    data: Tables,
    k: int,
    request: str | None,
    at: str | None,
    weights: str | None,
    value: str | None,
    missing: str | None,
    out: Path,
    overwrite: bool,
    show: Show,
) -> None:
    """Write the best rows of every request of DATA, best first.

    Two columns are added: `fused`, the score of MODEL, and `place`, from 1. Labels are not needed.
    """
    from harmonrank.cli.parts.drift_notes import drift_notes
    from harmonrank.data.reading.table_paths import file_kind
    from harmonrank.fusion.scoring.scoring import write_table
    from harmonrank.support.storage.files import check_output

    fitted = load_model(model, missing, at, value)
    file_kind(out)
    check_output(out, overwrite=overwrite)
    counted = {"weights": parse_pairs(weights), "value": parse_pairs(value, "--value")}
    best = fitted.rank(data, k, request=request, **counted)
    drift = fitted.drift(data) if best.height else None
    write_table(best, out, overwrite=overwrite)
    if drift is not None:
        show.notes(drift_notes(drift, recalibrated=False))
    requests = int((best["place"] == 1).sum())
    show.result(
        f"Wrote the best {k} of {requests:,} requests, {best.height:,} rows, to {out}.",
        {
            "rows": best.height,
            "requests": requests,
            "k": k,
            "output": str(out),
            "drift": drift and drift.to_dict(),
        },
    )
