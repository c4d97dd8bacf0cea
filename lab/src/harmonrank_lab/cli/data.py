"""`harmonrank lab data`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts import Show, Verb, output, setting, shown, whole
from harmonrank.support import UsageError, did_you_mean


@click.group("data")
def command() -> None:
    """Bring in raw logs: your own, or those of public data sets."""


@command.command("import", cls=Verb)
@click.argument("kind")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--train-rows", type=whole(1), help="Training rows; half if not given.")
@click.option("--valid-rows", type=whole(1), help="Validation rows; a quarter.")
@click.option("--test-rows", type=whole(1), help="Test rows; a quarter.")
@setting("--no-random", is_flag=True, help="KuaiRand: leave out log_random_*.")
@click.option("--file", metavar="NAME", help="Tenrec: which file, where there are several.")
@setting(
    "--long-view", type=whole(1), metavar="N",
    help="Tenrec: a view is long from watching_times N up; 2 if not given.",
)  # fmt: skip
@output("Folder to write.")
@shown
def import_command(
    kind: str,
    folder: Path,
    train_rows: int | None,
    valid_rows: int | None,
    test_rows: int | None,
    out: Path,
    overwrite: bool,
    show: Show,
    **how: Any,
) -> None:
    """Turn the raw log in DIR into partitioned parquet.

    KIND is kuairand, tenrec, or a TOML file that declares the columns of your own log.

    The folder holds train, valid and test, divided by time or, where there is no clock, by a
    hash of the user; user and item features; log.toml, which names the columns; and a manifest.
    """
    from harmonrank.support.storage import check_output
    from harmonrank_lab.upstream.logs import LOG_TOML, import_log

    check_output(out, overwrite=overwrite, holds=LOG_TOML)
    source = _find(kind, folder, **how)
    rows = (train_rows, valid_rows, test_rows)
    for note in source.notes:
        show.line(note)
    manifest = import_log(source, out, rows=rows, overwrite=overwrite, on_step=show.event)
    for what, count in manifest["oddities"].items():
        show.line(f"{count:,} × {what}.")
    counts = ", ".join(f"{count:,} {part}" for part, count in manifest["rows"].items())
    text = f"Wrote {counts} rows to {out}, divided by {manifest['split']['by']}."
    show.result(text, {k: v for k, v in manifest.items() if k != "files"})


def _find(
    kind: str, folder: Path, *, no_random: bool, file: str | None, long_view: int | None
) -> Any:
    from harmonrank_lab.upstream.logs import SHIPPED, find_declared, find_kuairand, find_tenrec

    declared = kind.endswith(".toml")
    if not declared and kind not in SHIPPED:
        hint = did_you_mean(kind, SHIPPED)
        raise UsageError(
            f"There is no importer '{kind}'. {hint} For a log of your own, name a TOML file that "
            "declares its columns."
        )
    others = {"--file": file, "long-view": long_view} if kind != "tenrec" else {}
    others |= {"no-random": no_random or None} if kind != "kuairand" else {}
    for option, value in others.items():
        if value is not None:
            raise UsageError(f"{option} does not apply to {kind}; leave it out.")
    if declared:
        return find_declared(folder, kind)
    if kind == "kuairand":
        return find_kuairand(folder, random=not no_random)
    return find_tenrec(folder, file=file, long_view=long_view or 2)
