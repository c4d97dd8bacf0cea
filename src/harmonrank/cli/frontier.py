"""`harmonrank frontier`."""

__all__ = ["command"]

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts.options import (
    Show,
    at_option,
    count_option,
    format_option,
    load_model,
    output,
    parse_pairs,
    report_option,
    shown,
    weights,
)
from harmonrank.cli.parts.table_options import Tables, table_name, table_option
from harmonrank.support.errors import OutputError, UsageError

if TYPE_CHECKING:
    from harmonrank.evaluation.frontier import Frontier, Guarded, Refit
    from harmonrank.fusion import Method

_REFITS = 5


@click.command("frontier")
@click.argument("model", type=click.Path(path_type=Path))
@table_option("--data", required=True, help="Rows with labels, none of which it was fitted on.")
@at_option
@weights
@count_option("-k", 10, "Events among how many of a request.", least=1)
@count_option("--points", 300, "Weights to try, at most.", least=3)
@click.option(
    "--keep",
    multiple=True,
    metavar="FLOOR",
    help="Find the best AUC-sum that keeps a floor such as buy>=0.75 or like>=current-0.002; of "
    "an unwanted objective report<=0.3.",
)
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    help="Of the interval whose lower end must hold a floor; 0 for no margin.",
)
@table_option("--refit", help="Training rows: also fit for the weights of a few points.")
@click.option(
    "--choose",
    metavar="POINT",
    help="The point to save: knee, current, a number, or weights A=2,B=1; what --keep finds, or "
    "else the knee, if left out.",
)
@click.option("--save", "name", metavar="NAME", help="Keep the point in the model, for --at NAME.")
@output("Folder of a new model with the point; MODEL itself if left out.", required=False)
@report_option
@format_option
@shown
def command(
    model: Path,
    data: Tables,
    at: str | None,
    weights: str | None,
    k: int,
    points: int,
    keep: tuple[str, ...],
    level: float,
    refit: Tables | None,
    choose: str | None,
    name: str | None,
    out: Path | None,
    overwrite: bool,
    report: Path | None,
    style: str,
    show: Show,
) -> None:
    """Show what MODEL can trade between objectives, without another fit.

    The weights of the objectives move over all trade-offs while the calibrated probabilities of
    the one fit stay: AUC, per-request AUC and events at K of every point, the unbeaten ones, their
    hypervolume and knee. A point can be kept in the model under a name, which --at then means.

    With --keep, the weights of the best AUC-sum are searched for which all floors hold. Where that
    cannot be, the floors that conflict are named, nothing is saved, and the exit code is 3.
    """
    from harmonrank.evaluation.frontier import Floor, Sweep, frontier_of, guarded_by, refits_of
    from harmonrank.reports.facts import run_of
    from harmonrank.reports.frontier import frontier_page, frontier_table
    from harmonrank.reports.html import check_page, write_page

    fitted = load_model(model)
    target = _target(model, fitted, name, out, overwrite=overwrite)
    check_page(report)
    current = fitted if at is None else fitted.at(at)
    sweep = Sweep.of(current, data, count=parse_pairs(weights))
    floors = [Floor.parse(text, sweep.names, sweep.unwanted) for text in keep]
    guarded = guarded_by(sweep, floors, level=level) if floors else None
    found = frontier_of(
        sweep,
        k=k,
        points=points,
        more=_more(guarded),
        on_step=lambda *done: show.advance("points ", *done),
    )
    asked = choose or name or guarded is not None
    chosen, kept = _chosen(found, choose or _usual(guarded)) if asked else (None, None)
    missed = guarded is not None and not guarded.feasible and choose is None
    refits: tuple[Refit, ...] = ()
    if refit is not None:
        some = list(found.listed())[:_REFITS]
        refits = refits_of(
            sweep, found, refit, some, on_refit=lambda n: show.line(f"Fitted for point {n}.")
        )
    if report is not None:
        title = f"{fitted.name} on {table_name(data)}"
        write_page(frontier_page(title, found, run_of(), chosen, guarded), report)
        show.line(f"Report: {report}")
    if target is not None and name is not None and kept is not None and not missed:
        fitted.with_point(name, kept).save(target, overwrite=overwrite or out is None)
        show.line(f"Saved point '{name}' in {target}; --at {name} means it.")
    table = frontier_table(found, chosen, guarded)
    if refits:
        far = max(one.largest for one in refits)
        note = f"Fitted again for {len(refits)} of these points: no AUC differs by over {far:.4f}."
        table = replace(table, notes=(*table.notes, note))
    show.result(
        table,
        {
            "method": fitted.name,
            **found.to_dict(),
            "guarded": None if guarded is None else guarded.to_dict(),
            "chosen": None if kept is None else {"number": chosen, "weights": kept, "name": name},
            "refits": [one.to_dict(found.names) for one in refits],
        },
        style=style,
    )
    if missed:
        show.line("No point was saved." if name else "No point keeps all floors.")
        sys.exit(3)


def _more(guarded: "Guarded | None") -> dict[str, Any]:
    """Return what the search found as a point of its own."""
    return {} if guarded is None else {_usual(guarded): guarded.point.weights}


def _usual(guarded: "Guarded | None") -> str:
    """Return the name of the point that is meant where none is chosen."""
    if guarded is None:
        return "knee"
    return "kept" if guarded.feasible else "nearest"


def _target(
    model: Path,
    fitted: "Method",
    name: str | None,
    out: Path | None,
    *,
    overwrite: bool,
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


def _chosen(found: "Frontier", choose: str) -> tuple[int | None, dict[str, float]]:
    """Return the number of the point that --choose means, if it has one, and its weights."""
    known = {**found.named, "knee": found.auc.knee, "current": 0}
    if choose in known:
        return known[choose], found.point(known[choose])
    if choose.isdecimal():
        return int(choose), found.point(int(choose))
    if "=" not in choose:
        raise UsageError(
            f"--choose takes {', '.join(known)}, the number of a point or weights such as "
            f"buy=2,like=1. Got '{choose}'."
        )
    return None, parse_pairs(choose, "--choose") or {}
