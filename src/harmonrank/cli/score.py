"""`harmonrank score`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts.engine_options import EngineChoice, engine_options
from harmonrank.cli.parts.options import (
    Show,
    at_option,
    load_model,
    missing_option,
    output,
    parse_pairs,
    recalibrate,
    shown,
    value,
    weights,
)
from harmonrank.cli.parts.table_options import Tables, table_argument


@click.command("score")
@click.argument("model", type=click.Path(path_type=Path))
@table_argument("data")
@output("Table to write: parquet, csv or arrow; with --engine ray a folder.")
@click.option("--column", default="fused", show_default=True, help="Name of the new column.")
@at_option
@weights
@value
@missing_option
@recalibrate
@engine_options
@shown
def command(
    model: Path,
    data: Tables,
    out: Path,
    column: str,
    at: str | None,
    weights: str | None,
    value: str | None,
    missing: str | None,
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

    from harmonrank.cli.parts.drift_notes import drift_notes
    from harmonrank.fusion.drift.drift import Drift
    from harmonrank.fusion.scoring.scoring import score_file
    from harmonrank.fusion.scoring.scoring_parts import score_files

    fitted = load_model(model, missing, at, value)
    found: list[Drift] = []
    engine.refuse(recalibrate and "--recalibrate", "run `harmonrank recalibrate` first")
    asked: dict[str, Any] = {
        "column": column,
        "weights": parse_pairs(weights),
        "value": parse_pairs(value, "--value"),
        "overwrite": overwrite,
        "on_drift": None if recalibrate else found.append,
    }
    started = perf_counter()
    if engine.is_cluster:
        with engine.opened() as cluster:
            rows = score_files(
                cluster,
                fitted,
                data,
                out,
                **asked,
                on_file=lambda done, total: show.advance("score ", done, total, f"{done} files"),
            )
    else:
        if recalibrate:
            found.append(fitted.drift(data))
            fitted = fitted.recalibrated(data)
        rows = score_file(
            fitted,
            data,
            out,
            **asked,
            on_rows=lambda done, total: show.advance("score ", done, total, f"{done:,} rows"),
        )
    seconds = perf_counter() - started
    drift = found[0] if found else None  # a table without rows has not drifted
    if drift is not None:
        show.notes(drift_notes(drift, recalibrated=recalibrate))
    written = {"rows": rows, "seconds": seconds, "output": str(out), "column": column}
    show.result(
        f"Scored {rows:,} rows in {seconds:.1f} s; wrote {out}.",
        {**written, "recalibrated": recalibrate, "drift": drift and drift.to_dict()},
    )
