"""`harmonrank compare`."""

__all__ = ["command"]

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from harmonrank.cli.parts.engine_options import EngineChoice, engine_options
from harmonrank.cli.parts.options import (
    Show,
    baseline_option,
    count_option,
    method_option,
    parse_names,
    path_option,
    recalibrate,
    reports,
    seed_option,
    shown,
)
from harmonrank.cli.parts.schema_options import columns, schema_of
from harmonrank.cli.parts.table_options import (
    Tables,
    cut_options,
    in_blocks,
    learning_tables,
    memory_option,
    table_argument,
    table_option,
)
from harmonrank.support.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.data import Schema
    from harmonrank.evaluation.compare_blocks import CompareBlocks
    from harmonrank.fusion.quality.block_quality import SampledLog

_NAMED = 6


@click.command("compare")
@table_argument("log", required=False)
@learning_tables("selection", required=False)
@table_option("--test", help="Table to measure on.")
@click.option(
    "--split",
    type=click.Choice(["time", "request"]),
    help="Measure on some rows of LOG, the newest or by request.",
)
@cut_options
@columns
@method_option("--methods", "all", "Ways to fuse", metavar="all|A,B")
@baseline_option
@count_option("-k", 10, "Value at how many of a request, where events have values.", least=1)
@seed_option
@path_option(
    "--runs",
    help="Folder that keeps finished methods; repeat the command to go on.",
)
@recalibrate
@memory_option
@reports
@engine_options
@shown
def command(
    log: Tables | None,
    train: Tables | None,
    valid: Tables | None,
    test: Tables | None,
    split: Literal["time", "request"] | None,
    test_share: float | None,
    test_from: str | None,
    methods: str,
    baseline: str | None,
    k: int,
    seed: int,
    runs: Path | None,
    recalibrate: bool,
    memory: str | None,
    report: Path | None,
    figures: Path | None,
    style: str,
    engine: EngineChoice,
    show: Show,
    **column_options: Any,
) -> None:
    """Fit many methods on the same rows and print a leaderboard.

    Parquet tables that --memory cannot hold are read in blocks.

    Rows to learn from and to measure on are two tables, --train and --test, or one, LOG, which
    --split cuts; requests stay whole.

    The first sentence says who is ahead, and by how much. In a world the ceiling is known, and
    each method's regret is how far below it stays. With --engine ray each method is fitted and
    measured by a worker.
    """
    from harmonrank.cli.parts.drift_notes import drift_notes
    from harmonrank.cli.parts.reporting import Reporting
    from harmonrank.data import read_log
    from harmonrank.data.splitting import Cut, split_rows
    from harmonrank.evaluation import Baseline, compare
    from harmonrank.evaluation.baseline import TODAY
    from harmonrank.fusion.position.correction import corrected
    from harmonrank.fusion.quality.block_quality import sampled_requests
    from harmonrank.fusion.quality.missing_scores import missing_of
    from harmonrank.fusion.quality.position_quality import PositionCorrection

    table = _learned_from(log, train)
    if (test is None) == (split is None):
        raise UsageError("Give either --test TABLE, or --split time (or request) to cut one table.")
    if split is None and (test_share is not None or test_from is not None):
        raise UsageError("--test-share and --test-from tell where --split cuts; add --split time.")
    cut = None if split is None else Cut(split, test_share, test_from, seed=seed)
    schema = schema_of(**column_options, near=table, quiet=show.quiet)
    names = methods if methods == "all" else parse_names(methods)
    reporting = Reporting(report, figures, show)
    blocks = _blocks(table, test, valid, schema, memory, runs)
    sampled: dict[str, SampledLog] = {}
    if blocks is not None:
        large = {"Training": blocks.train, "Test": blocks.test}
        sampled = {name: sampled_requests(part) for name, part in large.items() if part}
    exam_rows = valid if not blocks or not blocks.valid else sampled_requests(blocks.valid).log
    rows = sampled["Training"].log if "Training" in sampled else read_log(table, schema)
    if cut is None:
        assert test is not None
        known = sampled.get("Test")
        places = None if known is None else known.places
        today = None if baseline is None else Baseline.read(test, baseline, places)
        exam = read_log(test, schema) if known is None else known.log
    else:
        parts = split_rows(table, cut, time=schema.time, request=schema.request)
        show.line(parts.words())
        places = parts.rows("test")
        today = None if baseline is None else Baseline.read(table, baseline, places)
        rows, exam = rows.take(parts.rows("train")), rows.take(places)
    rows = corrected(rows)
    schema = replace(schema, examination=rows.schema.examination)
    exam = corrected(read_log(exam, schema))
    with engine.used():
        board = compare(
            rows,
            exam,
            schema,
            names,
            valid=exam_rows,
            baseline=today,
            seed=seed,
            runs=runs,
            recalibrate=recalibrate,
            k=k,
            on_event=reporting.event,
            blocks=blocks,
        )
    if "Training" in sampled:
        board = replace(board, train_rows=sampled["Training"].rows)
    if "Test" in sampled:
        board = replace(board, test_rows=sampled["Test"].rows)
    fusions = len(board.entries) - (today is not None)
    title = f"{fusions} fusions of {_objectives(board.objectives)}"
    assert board.drift is not None
    notes = drift_notes(board.drift, recalibrated=recalibrate)
    tried = [entry.name for entry in board.entries if entry.name != TODAY]
    notes = [*(_in_blocks(part, tried) for part in sampled.items()), *notes]
    lost = {"train": missing_of(rows), "test": missing_of(exam)}
    parts_of = zip(("Training", "Test"), lost.values(), strict=True)
    notes += [f"{part} rows. {found}" for part, found in parts_of if found]
    position = PositionCorrection.of(exam)
    notes += [] if position is None else [f"Test rows. {position.words()}"]
    reporting.compared(title, board, rows, exam, seed, runs=runs, caveats=notes)
    missing = {part: found and found.to_dict() for part, found in lost.items()}
    parts_found = {
        "missing": missing,
        "position": None if position is None else position.to_dict(),
    }
    show.result(board.to_table(), {**board.to_dict(), **parts_found}, style=style)
    show.notes([*notes, *board.warnings])
    if all(entry.error for entry in board.entries if entry.name != TODAY):
        raise SystemExit(1)


def _blocks(
    table: Tables,
    test: Tables | None,
    valid: Tables | None,
    schema: "Schema",
    memory: str | None,
    runs: Path | None,
) -> "CompareBlocks | None":
    """Return the tables that --memory cannot hold, if there are any."""
    from harmonrank.data.rows.memory import memory_limit
    from harmonrank.evaluation.compare_blocks import CompareBlocks
    from harmonrank.fusion.fitting.fit import rows_within
    from harmonrank.fusion.quality.measurable import require_measurable

    train = in_blocks(table, schema, memory)
    exam = None if test is None else in_blocks(test, schema, memory)
    if train is None and exam is None:
        return None
    if exam is not None or schema.position is not None:
        require_measurable(schema)
    if test is None:
        raise UsageError(
            "--split needs all rows in memory; write the parts with `harmonrank split`, or raise "
            "--memory."
        )
    if runs is not None:
        raise UsageError("--runs needs all rows in memory; leave it out, or raise --memory.")
    held = None if valid is None else in_blocks(valid, schema, memory)
    return CompareBlocks(train, exam, rows_within(schema, memory_limit(memory)), held)


def _in_blocks(part: "tuple[str, SampledLog]", methods: Sequence[str]) -> str:
    """Return what is done with a table that is read in blocks, in a sentence."""
    from harmonrank.fusion import method_class

    name, sampled = part
    if name == "Test":
        return f"Test rows. {sampled.words()}"
    few = [name for name in methods if method_class(name).traits.whole]
    text = f"Training rows. Read {sampled.rows:,} rows in blocks: "
    if not few:
        return f"{text}every method is fitted on all of them."
    return (
        f"{text}methods are fitted on all of them, but {', '.join(few)} on as many as --memory "
        "holds, drawn at random."
    )


def _objectives(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= _NAMED else f"{len(names)} objectives"


def _learned_from(log: Tables | None, train: Tables | None) -> Tables:
    """Return the one table that is named to learn from."""
    found = train if log is None else log
    if found is None or (log is not None and train is not None):
        raise UsageError("Name one table to learn from: LOG, or --train TABLE.")
    return found
