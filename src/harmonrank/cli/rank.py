"""`harmonrank rank`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.parts.model_options import ModelChoice, model_options
from harmonrank.cli.parts.options import Show, count_option, output, shown
from harmonrank.cli.parts.table_options import Tables, table_argument
from harmonrank.cli.parts.verb import verb


@verb("rank", example="harmonrank rank model candidates.parquet -k 20 -o best.parquet")
@model_options
@table_argument("data")
@count_option("-k", 10, "Most rows of a request.", least=1)
@click.option("--request", metavar="A", help="Request column; that of the model if left out.")
@output("Table to write: parquet, csv or arrow.")
@shown
def command(
    chosen: ModelChoice,
    data: Tables,
    k: int,
    request: str | None,
    out: Path,
    overwrite: bool,
    show: Show,
) -> None:
    """Write the best rows of every request of DATA, best first.

    Two columns are added: `fused`, the score of MODEL, and `place`, from 1. Labels are not needed.
    """
    from harmonrank.data.reading.table_paths import file_kind
    from harmonrank.evaluation import drift_notes
    from harmonrank.fusion.scoring import write_table
    from harmonrank.support.storage.files import check_output

    fitted = chosen.load()
    file_kind(out)
    check_output(out, overwrite=overwrite)
    best = fitted.rank(data, k, request=request, **chosen.asked)
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
