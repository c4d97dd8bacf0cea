"""`harmonrank explain`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.parts.model_options import ModelChoice, model_options
from harmonrank.cli.parts.options import Show, report_option, shown, whole
from harmonrank.cli.parts.table_options import Tables, table_name, table_option
from harmonrank.cli.parts.verb import setting, verb
from harmonrank.support.errors import UsageError


@verb("explain", example="harmonrank explain model --data test.parquet --row 0")
@model_options
@table_option("--data", help="Rows to explain it on; labels tell what weights cost.")
@click.option("--row", type=whole(), metavar="N", help="Explain this row of --data, from 0.")
@setting(
    "--add",
    type=float,
    default=0.1,
    help="Amount that is added to each score of the row in turn, and subtracted from it.",
)
@report_option
@shown
def command(
    chosen: ModelChoice,
    data: Tables | None,
    row: int | None,
    add: float,
    report: Path | None,
    show: Show,
) -> None:
    """Show what MODEL learned: effective weights, and what it makes of each score.

    An objective's effective weight is what a unit of its probability counts in the fused score:
    w/(π(1−π)), or its mean over events where the model was fitted for requests. With equal weights
    a rare objective has much of it.

    With --data, also the influence of each objective on the order of a request, with weights of
    equal influence where one rules; what moves the fused score on these rows, overall and by
    context, and how it answers to each score. With --row, why that row is where it is in its
    request: what each objective adds, which is the fused score exactly, and where another score
    would put it.
    """
    from harmonrank.cli.parts.pages import Pages
    from harmonrank.reports.explanation import explain

    if data is None and report is not None:
        raise UsageError("--row and --report explain rows; add --data TABLE.")
    pages = Pages(report, None, show)
    result = explain(chosen.load(), data, row=row, add=add, **chosen.asked)
    if data is not None:
        pages.write(result, title=f"Why {result.model.name} ranks {table_name(data)} as it does")
    *before, last = result.tables
    if result.caution and row is None:
        show.print(result.caution)
    for table in before:
        show.print(table)
    show.result(last, result.to_dict())
