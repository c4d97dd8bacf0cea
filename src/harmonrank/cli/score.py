"""`harmonrank score`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts.engine_options import EngineChoice, engine_options
from harmonrank.cli.parts.model_options import ModelChoice, model_options
from harmonrank.cli.parts.options import Show, output, recalibrate_option, shown
from harmonrank.cli.parts.table_options import Tables, table_argument
from harmonrank.cli.parts.verb import verb
from harmonrank.support.errors import UsageError


@verb("score", example="harmonrank score model candidates.parquet -o scored.parquet")
@model_options
@table_argument("data")
@output("Table to write: parquet, csv or arrow; with --engine ray a folder.")
@click.option("--column", default="fused", show_default=True, help="Name of the new column.")
@recalibrate_option
@engine_options
@shown
def command(
    chosen: ModelChoice,
    data: Tables,
    out: Path,
    column: str,
    recalibrate: bool,
    overwrite: bool,
    engine: EngineChoice,
    show: Show,
) -> None:
    """Write DATA with the fused score of MODEL as one more column; rows stay in order.

    With --engine ray every file of DATA is scored by some worker and written to a file of the same
    name in a folder; the same command goes on where an earlier one was cut short.
    """
    from time import perf_counter

    from harmonrank.evaluation import drift_notes, recalibration
    from harmonrank.fusion.drift.drift import Drift
    from harmonrank.fusion.scoring import score_file, score_files

    fitted = chosen.load()
    drifts: list[Drift] = []
    notes: list[str] = []
    if recalibrate and engine.is_cluster:
        raise UsageError(
            "--recalibrate does not work with --engine ray; run `harmonrank recalibrate` first."
        )
    asked: dict[str, Any] = {
        **chosen.asked,
        "column": column,
        "overwrite": overwrite,
        "on_drift": None if recalibrate else drifts.append,
    }
    started = perf_counter()
    if engine.is_cluster:
        with engine.opened() as cluster:
            rows = score_files(cluster, fitted, data, out, **asked, on_file=show.files)
    else:
        if recalibrate:
            changed = recalibration(fitted, data)
            drifts, fitted, notes = [changed.drift], changed.model, changed.notes
        rows = score_file(fitted, data, out, **asked, on_rows=show.rows)
    seconds = perf_counter() - started
    drift = drifts[0] if drifts else None  # a table without rows has not drifted
    if drift is not None:
        show.notes(notes or drift_notes(drift, recalibrated=False))
    written = {"rows": rows, "seconds": seconds, "output": str(out), "column": column}
    show.result(
        f"Scored {rows:,} rows in {seconds:.1f} s; wrote {out}.",
        {**written, "recalibrated": recalibrate, "drift": drift and drift.to_dict()},
    )
