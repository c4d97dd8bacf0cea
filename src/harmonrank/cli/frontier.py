"""`harmonrank frontier`."""

__all__ = ["command"]

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts import options
from harmonrank.cli.parts.model_options import at_option, model_argument
from harmonrank.cli.parts.options import Show, shown
from harmonrank.cli.parts.table_options import Tables, table_name, table_option
from harmonrank.cli.parts.verb import verb
from harmonrank.support.errors import OutputError, UsageError

if TYPE_CHECKING:
    from harmonrank.fusion import Method


@verb(
    "frontier", example="harmonrank frontier model --data test.parquet --keep 'buy>=current-0.002'"
)
@model_argument
@table_option("--data", required=True, help="Rows with labels, none of which it was fitted on.")
@at_option
@options.listed_option(
    "--weights", "A=2,B=1", "What each AUC counts in the sum; as in the model if not named."
)
@options.baseline_option
@options.count_option("-k", 10, "Events among how many of a request.", least=1)
@options.count_option("--points", 300, "Weights to try, at most.", least=3)
@click.option(
    "--keep",
    multiple=True,
    metavar="FLOOR",
    help="Find the best AUC-sum that keeps a floor such as buy>=0.75, like>=current-0.002 or, with "
    "--baseline, click>=today; of an unwanted objective report<=0.3. May be repeated.",
)
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    help="Confidence level of the interval whose lower end must hold a floor; 0 for no margin.",
)
@table_option("--refit", help="Training rows: also fit for the weights of a few points.")
@click.option(
    "--choose",
    metavar="POINT",
    help="The point to save: knee, current, a number, or weights A=2,B=1; if left out, the one "
    "that --keep finds, or else the knee.",
)
@click.option("--save", "name", metavar="NAME", help="Keep the point in the model, for --at NAME.")
@options.output(
    "Folder of a new model with the point; if left out, MODEL itself is changed.", required=False
)
@options.report_option
@options.format_option
@shown
def command(
    model: Path,
    data: Tables,
    at: str | None,
    weights: str | None,
    keep: tuple[str, ...],
    choose: str | None,
    name: str | None,
    out: Path | None,
    overwrite: bool,
    report: Path | None,
    style: str,
    show: Show,
    **how: Any,
) -> None:
    """Show what MODEL can trade between objectives, without another fit.

    The weights of the objectives move over all trade-offs while the calibrated probabilities of
    the one fit stay: AUC within requests, AUC over all rows and events at K of every point, the
    unbeaten ones, their hypervolume and knee, beside what ranks today with --baseline. Where rows
    have requests, sums and floors are within them. A point can be kept in the model under a name,
    which --at then means.

    With --keep, the weights of the best AUC-sum are searched for which all floors hold. Where that
    cannot be, the floors that conflict are named, nothing is saved, and the exit code is 3.
    """
    from harmonrank.cli.parts.pages import Pages
    from harmonrank.evaluation.frontier import frontier
    from harmonrank.fusion import load
    from harmonrank.reports.frontier import floor_table, frontier_table

    fitted = load(model)
    target = _target(model, fitted, name, out, overwrite=overwrite)
    pages = Pages(report, None, show)
    result = frontier(
        fitted if at is None else fitted.at(at),
        data,
        weights=options.parse_pairs(weights),
        keep=keep,
        **how,
        on_step=lambda *done: show.advance("points ", *done),
        on_refit=lambda number: show.line(f"Fitted for point {number}."),
    )
    number, kept = None, None
    if choose is not None and "=" in choose:
        kept = options.parse_pairs(choose, "--choose")
    elif choose or name or keep:
        number, kept = result.chosen(choose or result.usual)
    missed = result.usual == "nearest" and choose is None
    pages.write(result, title=f"{fitted.name} on {table_name(data)}", chosen=number)
    if target is not None and name is not None and kept is not None and not missed:
        fitted.with_point(name, kept).save(target, overwrite=overwrite or out is None)
        show.line(f"Saved point '{name}' in {target}; --at {name} means it.")
    told = None if kept is None else {"number": number, "weights": kept, "name": name}
    if (floors := floor_table(result)) is not None:
        show.print(floors)
    shown = {**result.to_dict(), "chosen": told}
    show.result(frontier_table(result, number), shown, style=style)
    if missed:
        show.line("No point was saved." if name else "No point keeps all floors.")
        sys.exit(3)


def _target(
    model: Path, fitted: "Method", name: str | None, out: Path | None, *, overwrite: bool
) -> Path | None:
    """Return the folder to write, after all that can be wrong with it."""
    from harmonrank.fusion.saved import MODEL
    from harmonrank.registry.version import RECORD
    from harmonrank.support.storage.files import check_output

    if name is None:
        if out is not None:
            raise UsageError("-o writes a model with a point; add --save NAME.")
        return None
    fitted.with_point(name, {})  # refuses a name, or a method, that cannot be
    if name in fitted.points and not overwrite:
        raise OutputError(f"The model has a point '{name}'; choose another name, or --overwrite.")
    if out is not None:
        check_output(out, overwrite=overwrite, holds=MODEL)
        return out
    if (model.parent / RECORD).is_file():
        raise UsageError(
            f"'{model}' is a version of a registry, which never changes; write a new model with "
            "-o and publish that."
        )
    check_output(model, overwrite=True, holds=MODEL)
    return model
