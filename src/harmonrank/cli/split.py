"""`harmonrank split`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts.options import Show, output, seed_option, shown
from harmonrank.cli.parts.schema_options import columns, schema_of
from harmonrank.cli.parts.table_options import Tables, cut_options, table_argument


@click.command("split")
@table_argument("log")
@output("Folder of the parts.")
@click.option(
    "--by",
    type=click.Choice(["time", "request"]),
    help="What is cut by; time where there is a column of times.",
)
@cut_options
@click.option("--valid-share", type=float, default=0.0, help="Of validation rows; else none.")
@seed_option
@columns
@shown
def command(
    log: Tables,
    out: Path,
    by: Any,
    test_share: float | None,
    test_from: str | None,
    valid_share: float,
    seed: int,
    overwrite: bool,
    show: Show,
    **column_options: Any,
) -> None:
    """Cut LOG into train, valid and test tables; requests stay whole.

    By time the newest rows are tested on: those from --test-from on, or about --test-share of all.
    By request a hash of its id decides, the same in every table. The folder gets train.parquet,
    test.parquet, valid.parquet if asked for, and schema.toml.
    """
    from harmonrank.data.split_files import FACTS, write_split
    from harmonrank.data.splitting import Cut, split_rows
    from harmonrank.support.storage.files import check_output

    schema = schema_of(**column_options, near=log, quiet=show.quiet, required=False)
    time = column_options["time"] if schema is None else schema.time
    request = column_options["request"] if schema is None else schema.request
    cut = Cut(by or ("time" if time else "request"), test_share, test_from, valid_share, seed)
    check_output(out, overwrite=overwrite, holds=FACTS)
    parts = split_rows(log, cut, time=time, request=request)
    show.line(parts.words())
    if request is None:
        show.line("There is no request column, so rows of one request may be on both sides.")
    facts = write_split(
        log,
        parts,
        out,
        schema,
        overwrite=overwrite,
        on_rows=lambda done, total: show.advance("split ", done, total, f"{done:,} rows"),
    )
    show.result(_table(facts, out), facts)


def _table(facts: dict[str, Any], out: Path) -> Any:
    from harmonrank.support.table import table_of

    positives = facts["positives"]
    labels = list(next(iter(positives.values())))
    rows = [
        (name, facts["rows"][name], facts["requests"][name], *counts.values())
        for name, counts in positives.items()
    ]
    notes = ("Positives are counted per objective.",) if labels else ()
    return table_of(("part", "rows", "requests", *labels), rows, title=f"Wrote {out}", notes=notes)
