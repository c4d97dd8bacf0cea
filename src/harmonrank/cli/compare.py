"""`harmonrank compare`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.options import (
    baseline_option,
    columns,
    learning_tables,
    method_option,
    numbers,
    parse_names,
    path_option,
    recalibrate,
    reports,
    schema_of,
    seed_option,
)


@click.command("compare")
@learning_tables("selection")
@path_option("--test", required=True, help="Table to measure on.")
@columns
@method_option("--methods", "all", "Ways to fuse", metavar="all|A,B")
@baseline_option
@seed_option
@path_option(
    "--runs",
    help="Folder that keeps finished methods; repeat the command to go on.",
)
@recalibrate
@reports
@numbers
def command(
    train: Path,
    valid: Path | None,
    test: Path,
    methods: str,
    baseline: str | None,
    seed: int,
    runs: Path | None,
    recalibrate: bool,
    report: Path | None,
    figures: Path | None,
    style: str,
    json_file: str | None,
    quiet: bool,
    **column_options: Any,
) -> None:
    """Fit many methods on the same rows and print a leaderboard.

    The first sentence says who is ahead, and by how much. In a world the ceiling is known, and
    each method's regret is how far below it stays.
    """
    from harmonrank.cli.drift_notes import drift_notes, say
    from harmonrank.cli.reporting import Reporting
    from harmonrank.cli.show import Show
    from harmonrank.data import read_log
    from harmonrank.evaluation import Baseline, compare
    from harmonrank.evaluation.baseline import TODAY

    schema = schema_of(**column_options)
    names = methods if methods == "all" else parse_names(methods)
    with Show(quiet=quiet, json_file=json_file) as show:
        reporting = Reporting(report, figures, show)
        today = None if baseline is None else Baseline.read(test, baseline)
        rows, exam = read_log(train, schema), read_log(test, schema)
        board = compare(
            rows,
            exam,
            schema,
            names,
            valid=valid,
            baseline=today,
            seed=seed,
            runs=runs,
            recalibrate=recalibrate,
            on_event=reporting.event,
        )
        fusions = len(board.entries) - (today is not None)
        title = f"{fusions} fusions of {', '.join(board.objectives)}"
        assert board.drift is not None
        notes = drift_notes(board.drift, recalibrated=recalibrate)
        reporting.compared(title, board, rows, exam, seed, runs=runs, caveats=notes)
    show.result(board.to_table(), board.to_dict(), style=style)
    say([*notes, *board.warnings])
    if all(entry.error for entry in board.entries if entry.name != TODAY):
        raise SystemExit(1)
