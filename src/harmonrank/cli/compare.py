"""`harmonrank compare`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any, Literal

import click

from harmonrank.cli.parts.column_options import ColumnChoice, column_options
from harmonrank.cli.parts.engine_options import EngineChoice, engine_options
from harmonrank.cli.parts.options import (
    Show,
    baseline_option,
    count_option,
    method_option,
    parse_names,
    path_option,
    recalibrate_option,
    reports,
    seed_option,
    shown,
)
from harmonrank.cli.parts.table_options import (
    Tables,
    learning_tables,
    memory_option,
    table_argument,
    table_option,
)
from harmonrank.cli.parts.verb import verb
from harmonrank.support.errors import UsageError


@verb(
    "compare",
    example="harmonrank compare log.parquet --split time --baseline prod_score",
)
@table_argument("log", required=False)
@learning_tables("selection", required=False)
@table_option("--test", help="Table to measure on.")
@click.option(
    "--split",
    type=click.Choice(["time", "request"]),
    help="Measure on some rows of LOG, the newest or by request.",
)
@click.option(
    "--test-share",
    type=float,
    metavar="SHARE",
    help="Share of rows held out for testing; .2 if left out.",
)
@click.option("--test-from", metavar="TIME", help="Test on rows from this time on.")
@column_options
@method_option("--methods", "harmonrank,logistic,closed-form", "Ways to fuse", metavar="all|A,B")
@baseline_option
@count_option("-k", 10, "Events, and their value, in how many of a request.", least=1)
@seed_option
@path_option("--runs", help="Folder that keeps finished methods; repeat the command to go on.")
@recalibrate_option
@memory_option
@reports
@engine_options
@shown
def command(
    log: Tables | None,
    train: Tables | None,
    split: Literal["time", "request"] | None,
    test_share: float | None,
    test_from: str | None,
    columns: ColumnChoice,
    methods: str,
    seed: int,
    report: Path | None,
    figures: Path | None,
    style: str,
    engine: EngineChoice,
    show: Show,
    **how: Any,
) -> None:
    """Fit some methods on the same rows and print a leaderboard.

    Rows to learn from and to measure on are two tables, --train and --test, or one, LOG, which
    --split cuts; requests stay whole. Parquet tables that --memory cannot hold are read in blocks.

    The first sentence says who is ahead, and by how much: within requests, where the schema names
    them. In a world the ceiling is known, and each method's regret is how far below it stays. With
    --engine ray each method is fitted and measured by a worker.
    """
    from harmonrank.cli.parts.pages import Pages
    from harmonrank.data.splitting import Cut
    from harmonrank.evaluation import compare

    table = train if log is None else log
    if table is None or (log is not None and train is not None):
        raise UsageError("Name one table to learn from: LOG, or --train TABLE.")
    if split is None and (test_share is not None or test_from is not None):
        raise UsageError("--test-share and --test-from tell where --split cuts; add --split time.")
    cut = None if split is None else Cut(split, test_share, test_from, seed=seed)
    schema = columns.schema(table, quiet=show.quiet)
    pages = Pages(report, figures, show)
    with engine.opened() as workers:
        result = compare(
            table,
            schema,
            methods if methods == "all" else parse_names(methods),
            **how,
            split=cut,
            seed=seed,
            engine=workers,
            on_event=show.event,
        )
    pages.show_comparison(result, style)
    if result.failed:
        raise SystemExit(1)
