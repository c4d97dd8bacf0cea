"""`harmonrank init`."""

__all__ = ["command"]

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harmonrank.cli.parts.column_options import SCHEMA
from harmonrank.cli.parts.options import Show, path_option, shown
from harmonrank.cli.parts.table_options import Tables, table_argument
from harmonrank.cli.parts.verb import verb

if TYPE_CHECKING:
    from harmonrank.data.guess import Guess


@verb("init", example="harmonrank init log.parquet")
@table_argument("log")
@path_option("-o", "--output", "out", default=SCHEMA, show_default=True, help="File to write.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@shown
def command(log: Tables, out: Path, overwrite: bool, show: Show) -> None:
    """Guess which column of LOG is what, and write a schema.toml to be corrected.

    Labels are columns of 0 and 1; a score goes with the label that it is named like, as p_like,
    like_score or pLike with like, or else with the one that it predicts best. What is guessed, and
    why, is printed and stands in the file.
    """
    from harmonrank.data.guess import commented_toml, guess_schema
    from harmonrank.data.reading.tables import describe
    from harmonrank.support.storage.files import check_output, new_file

    check_output(out, overwrite=overwrite)
    guess = guess_schema(log)
    with new_file(out, overwrite=overwrite) as partial:
        partial.write_text(commented_toml(guess, describe(log)), encoding="utf-8")
    following = _next_command(guess, log, out)
    show.result(guess.to_table(), {"output": str(out), **guess.to_dict(), "next": following})
    if not show.quiet:
        text = f"Wrote {out}; look it over, then:\n\n    {following}"
        show.console.print(f"\n{text}", markup=False, soft_wrap=True)


def _next_command(guess: "Guess", log: Tables, out: Path) -> str:
    """Return the command that compares on this log."""
    from harmonrank.data.reading.table_paths import shown_name

    named = log if isinstance(log, list) else [log]
    parts = ["harmonrank", "compare", *map(shown_name, named)]
    if out.name != SCHEMA or out.parent != Path():
        parts += ["--schema", str(out)]
    parts += ["--split", "time" if guess.schema.time else "request"]
    if guess.baseline is not None:
        parts += ["--baseline", guess.baseline]
    return shlex.join([*parts, "--report", "compare.html"])
