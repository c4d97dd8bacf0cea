"""`harmonrank explain`."""

__all__ = ["command"]

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts.options import (
    Show,
    at_option,
    load_model,
    missing_option,
    parse_pairs,
    report_option,
    shown,
    value,
    weights,
    whole,
)
from harmonrank.cli.parts.table_options import Tables, table_name, table_option
from harmonrank.support.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.fusion import Method
    from harmonrank.reports.explanation import ModelExplanation, RowExplanation
    from harmonrank.support.table import Table


@click.command("explain")
@click.argument("model", type=click.Path(path_type=Path))
@table_option("--data", help="Rows to explain it on; labels are not needed.")
@click.option("--row", type=whole(), metavar="N", help="Explain this row of --data, from 0.")
@click.option(
    "--add",
    type=float,
    default=0.1,
    show_default=True,
    help="What is added to each score of the row in turn, and taken off it.",
)
@at_option
@weights
@value
@missing_option
@report_option
@shown
def command(
    model: Path,
    data: Tables | None,
    row: int | None,
    add: float,
    at: str | None,
    weights: str | None,
    value: str | None,
    missing: str | None,
    report: Path | None,
    show: Show,
) -> None:
    """Show what MODEL learned: effective weights, and what it makes of each score.

    An objective's effective weight is w/(π(1−π)): what a unit of its probability counts in
    the fused score. With equal weights the rarest objective dominates.

    With --data, also what moves the fused score on these rows, overall and by context, and how it
    answers to each score. With --row, why that row is where it is in its request: what each
    objective adds, which is the fused score exactly, and where another score would put it.
    """
    from harmonrank.reports import explanation_table

    if data is None and (row is not None or report is not None):
        raise UsageError("--row and --report explain rows; add --data TABLE.")
    fitted = load_model(model, missing, at, value)
    counted = parse_pairs(weights), parse_pairs(value, "--value")
    facts = fitted.explain(*counted)
    health = getattr(fitted, "health", None)
    numbers: dict[str, Any] = {} if health is None else {"health": health.to_dict()}
    curve = fitted.schema.examination
    table = explanation_table(fitted.name, facts, health, curve, fitted.optimises)
    parts: list[Any] = [table]
    if data is not None:
        fitted = _counted(fitted, *counted)
        found, one = _explained(fitted, data, row, add)
        notes = _notes(fitted, one)
        numbers |= {**found.to_dict(), "row": None if one is None else one.to_dict()}
        parts = _shown(table, found, one, notes)
        if report is not None:
            title = f"Why {fitted.name} ranks {table_name(data)} as it does"
            _write_report(report, title, table, found, one, notes)
            show.line(f"Report: {report}")
    told = {
        "method": fitted.name,
        "optimises": fitted.optimises,
        **facts,
        "points": fitted.points,
        "notes": [],
        **numbers,
    }
    told["examination"] = {str(place): chance for place, chance in curve.items()} or None
    if data is not None:
        told["notes"] = notes
    for part in parts[:-1]:
        show.print(part)
    show.result(parts[-1], told)


def _counted(
    fitted: "Method", weights: dict[str, float] | None, value: dict[str, float] | None
) -> "Method":
    """Return the model with the weights or values that are asked for as its own."""
    if value is not None:
        from dataclasses import replace

        fitted.fuser.weights(None, value)  # refuses a method that cannot
        changed = replace(fitted.schema, weights={}, value={**fitted.schema.value, **value})
        fitted = fitted.under(changed)
        return fitted
    return fitted if weights is None else fitted.reweighted(weights)


def _explained(
    fitted: "Method", data: Tables, row: int | None, add: float
) -> "tuple[ModelExplanation, RowExplanation | None]":
    from dataclasses import replace

    from harmonrank.data import read_log
    from harmonrank.data.reading.tables import column_names
    from harmonrank.reports.explanation import explain_model, explain_row

    log = read_log(data, fitted.schema, labels=False)
    request = fitted.schema.request
    if row is not None and request is not None and request in column_names(data):
        log = replace(log, request=_requests(data, request))
    one = None if row is None else explain_row(fitted, log, row, add)
    return explain_model(fitted, log), one


def _requests(data: Tables, column: str) -> Any:
    """Return a number per request; a row without one is a request of its own."""
    from harmonrank.data import open_table

    ids = open_table(data, [column])[column]
    known = ids.rank("dense").fill_null(0).to_numpy().astype("int64")
    known[known == 0] = -1 - (known == 0).nonzero()[0]
    return known


def _notes(fitted: "Method", one: "RowExplanation | None") -> list[str]:
    if one is None or one.adds is not None:
        return []
    return [
        f"{fitted.name} gives no probability of an objective, so its fused score has no part of "
        "each; where another score would put the row is known all the same."
    ]


def _shown(
    table: "Table",
    found: "ModelExplanation",
    one: "RowExplanation | None",
    notes: list[str],
) -> list[Any]:
    from dataclasses import replace

    from harmonrank.reports.explanation import context_pull_table, pull_table, row_table

    if one is not None:
        shown = row_table(one)
        return [replace(shown, notes=(*notes, *shown.notes))]
    by_context = context_pull_table(found)
    return [table, pull_table(found), *([by_context] if by_context.rows else [])]


def _write_report(
    report: Path,
    title: str,
    table: "Table",
    found: "ModelExplanation",
    one: "RowExplanation | None",
    notes: list[str],
) -> None:
    from dataclasses import replace

    from harmonrank.reports.explanation import explanation_page
    from harmonrank.reports.facts import run_of
    from harmonrank.reports.html import write_page

    text = explanation_page(title, replace(table, title=""), found, run_of(), one, notes)
    write_page(text, report)
