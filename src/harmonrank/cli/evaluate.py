"""`harmonrank evaluate`."""

__all__ = ["command"]

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts.engine_options import EngineChoice, engine_options
from harmonrank.cli.parts.options import (
    Show,
    at_option,
    baseline_option,
    count_option,
    load_model,
    missing_option,
    parse_pairs,
    recalibrate,
    reports,
    shown,
    value,
    weights,
)
from harmonrank.cli.parts.table_options import (
    Tables,
    in_blocks,
    memory_option,
    table_argument,
    table_name,
    table_option,
)
from harmonrank.support.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.data import Schema
    from harmonrank.data.rows.log_blocks import LogBlocks
    from harmonrank.evaluation import Leaderboard
    from harmonrank.support.table import Table

_WORKER_ROWS = 1 << 20  # Of a block that a worker scores.


@click.command("evaluate")
@click.argument("model", type=click.Path(path_type=Path))
@table_argument("data")
@at_option
@weights
@value
@count_option("-k", 10, "Value at how many of a request, where events have values.", least=1)
@baseline_option
@missing_option
@recalibrate
@memory_option
@table_option(
    "--train",
    help="Table that it was fitted on; the page then shows how scores have drifted since.",
)
@reports
@engine_options
@shown
def command(
    model: Path,
    data: Tables,
    at: str | None,
    weights: str | None,
    value: str | None,
    k: int,
    baseline: str | None,
    missing: str | None,
    recalibrate: bool,
    memory: str | None,
    train: Tables | None,
    report: Path | None,
    figures: Path | None,
    style: str,
    engine: EngineChoice,
    show: Show,
) -> None:
    """Measure how well MODEL ranks DATA, a table that has labels.

    A parquet table that --memory cannot hold is read in blocks, and with --engine ray by workers:
    AUCs and their intervals are of all rows, whatever else of some requests, drawn at random.
    """
    from harmonrank.cli.parts.drift_notes import drift_notes
    from harmonrank.cli.parts.reporting import Reporting
    from harmonrank.data import read_log
    from harmonrank.evaluation import Baseline
    from harmonrank.evaluation.measured import measured
    from harmonrank.evaluation.partitioned import partitioned_quality, put_into
    from harmonrank.fusion.position.correction import corrected
    from harmonrank.fusion.quality.block_quality import sampled_requests
    from harmonrank.fusion.quality.missing_scores import missing_of

    if train is not None and report is None and figures is None:
        raise UsageError("--train serves the page alone; add --report FILE.")
    fitted = load_model(model, missing, at, value)
    reporting = Reporting(report, figures, show)
    blocks = _blocks(engine, data, fitted.schema, memory)
    counted: dict[str, Any] = {
        "weights": parse_pairs(weights),
        "value": parse_pairs(value, "--value"),
        "k": k,
    }
    with engine.opened() if engine.is_cluster else nullcontext() as cluster:
        sampled = None if blocks is None else sampled_requests(blocks, engine=cluster)
        log = corrected(read_log(data, fitted.schema)) if sampled is None else sampled.log
        places = None if sampled is None else sampled.places
        today = None if baseline is None else Baseline.read(data, baseline, places)
        drift = fitted.drift(log)
        notes, as_fitted = drift_notes(drift, recalibrated=recalibrate), None
        if recalibrate:
            as_fitted = fitted.evaluate(log, **counted).auc_sum.estimate
            fitted = fitted.recalibrated(log)
            notes.append(f"As fitted, AUC-sum is {as_fitted:.4f}.")
        lost = missing_of(log, fitted)
        notes += [] if lost is None else [str(lost)]
        board = measured(fitted, log, **counted, baseline=today, drift=drift)
        if blocks is not None and sampled is not None:
            asked = {name: counted[name] for name in ("weights", "value")}
            exact = partitioned_quality(fitted, blocks, cluster, **asked, on_rows=_told(show))
            board = board.with_quality(fitted.name, partial(put_into, exact))
            notes.insert(0, sampled.words())
    title = f"{fitted.name} on {table_name(data)}"
    reporting.evaluated(title, fitted, board, log, train=train, caveats=notes)
    quality = board.qualities[fitted.name]
    reached = quality.auc_sum.estimate if as_fitted is None else as_fitted
    show.result(
        _table(board, fitted.name),
        {
            "method": fitted.name,
            **quality.to_dict(),
            "recalibrated": recalibrate,
            "auc_sum_as_fitted": reached,
            **{key: board.to_dict()[key] for key in ("drift", "upstream", "verdict", "warnings")},
            "baseline": _baseline(board),
            "missing": None if lost is None else lost.to_dict(),
        },
        style=style,
    )
    show.notes([*notes, *board.warnings])


def _blocks(
    engine: EngineChoice, data: Tables, schema: "Schema", memory: str | None
) -> "LogBlocks | None":
    """Return the blocks that workers read, or those of a table too large for memory."""
    from harmonrank.data.reading.table_paths import table_paths
    from harmonrank.data.rows.log_blocks import FileBlocks
    from harmonrank.fusion.quality.measurable import require_measurable

    if not engine.is_cluster:
        blocks = in_blocks(data, schema, memory)
        if blocks is not None:
            require_measurable(schema)
        return blocks
    require_measurable(schema)
    kind = table_paths(data)[0]
    engine.refuse(kind != "parquet" and f"A {kind} table", "convert it to parquet, or leave it out")
    return FileBlocks(data, schema, size=_WORKER_ROWS)


def _told(show: Any) -> Any:
    """Return what shows how many rows are scored."""
    return lambda done, total: show.advance("score ", done, total, f"{done:,} rows")


def _table(board: "Leaderboard", name: str) -> "Table":
    """Return the quality of each objective beside its score alone, and beside what ranks today."""
    from harmonrank.evaluation.baseline import TODAY

    beside = {"alone": {each: score.auc.estimate for each, score in board.upstream.items()}}
    notes = ["Alone: AUC by the upstream score of that objective."]
    if board.baseline is not None:
        today = board.qualities[TODAY]
        areas = {each: value.estimate for each, value in today.auc.items()}
        beside[TODAY] = {**areas, "sum": today.auc_sum.estimate}
        notes += filter(
            None, [f"{TODAY.capitalize()}: {board.baseline.text}.", board.baseline.note]
        )
    table = board.qualities[name].to_table(beside)
    sentence = "" if board.verdict is None else board.verdict.sentence
    return replace(table, title=sentence, notes=(*table.notes, *notes))


def _baseline(board: "Leaderboard") -> dict[str, Any] | None:
    """Return what the JSON says of the baseline: what it is, and how well it ranks."""
    from harmonrank.evaluation.baseline import TODAY

    if board.baseline is None:
        return None
    return {**board.baseline.to_dict(), **board.qualities[TODAY].to_dict()}
