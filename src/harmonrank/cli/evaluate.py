"""`harmonrank evaluate`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

from harmonrank.cli.parts.engine_options import EngineChoice, engine_options
from harmonrank.cli.parts.model_options import ModelChoice, model_options
from harmonrank.cli.parts.options import (
    Show,
    baseline_option,
    count_option,
    recalibrate_option,
    reports,
    shown,
)
from harmonrank.cli.parts.table_options import (
    Tables,
    memory_option,
    table_argument,
    table_name,
    table_option,
)
from harmonrank.cli.parts.verb import verb
from harmonrank.support.errors import UsageError


@verb(
    "evaluate",
    example="harmonrank evaluate model test.parquet --baseline prod_score",
)
@model_options
@table_argument("data")
@count_option("-k", 10, "Events, and their value, in how many of a request.", least=1)
@baseline_option
@recalibrate_option
@memory_option
@table_option(
    "--train",
    help="Table that it was fitted on; the page then shows how scores have drifted since.",
)
@reports
@engine_options
@shown
def command(
    chosen: ModelChoice,
    data: Tables,
    train: Tables | None,
    report: Path | None,
    figures: Path | None,
    style: str,
    engine: EngineChoice,
    show: Show,
    **how: Any,
) -> None:
    """Measure how well MODEL ranks DATA, a table that has labels.

    A parquet table that --memory cannot hold is read in blocks, and with --engine ray by workers:
    AUCs and their intervals are of all rows, whatever else of some requests, drawn at random.
    """
    from harmonrank.cli.parts.pages import Pages
    from harmonrank.evaluation import evaluate

    if train is not None and report is None and figures is None:
        raise UsageError("--train serves the page alone; add --report FILE.")
    fitted, pages = chosen.load(), Pages(report, figures, show)
    with engine.opened() as workers:
        result = evaluate(
            fitted,
            data,
            **chosen.asked,
            **how,
            train=train,
            engine=workers,
            on_rows=show.rows,
        )
    pages.show_comparison(result, style, title=f"{fitted.name} on {table_name(data)}")
