"""`harmonrank lab simulate`."""

__all__ = ["command"]

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts import (
    Show,
    Verb,
    count_option,
    output,
    seed_option,
    setting,
    shown,
    whole,
)
from harmonrank.support import UsageError, did_you_mean

if TYPE_CHECKING:
    from harmonrank.support import Table


@click.command("simulate", cls=Verb)
@click.argument("name", metavar="kuairand|tenrec", type=click.Choice(["kuairand", "tenrec"]))
@count_option("--rows", 1_000_000, "Rows of the log.", least=4)
@seed_option
@setting("--redraw", type=whole(0), help="Draws another world of the same kind.")
@count_option("--users", 20_000, "Users of the log.", least=1)
@count_option("--items", 5_000, "Items of the log.", least=1)
@click.option("--file", metavar="NAME", help="Which of Tenrec's files; QK-video.csv if not given.")
@output("Folder to write.")
@shown
def command(
    name: str,
    rows: int,
    seed: int,
    redraw: int | None,
    users: int,
    items: int,
    file: str | None,
    out: Path,
    overwrite: bool,
    show: Show,
) -> None:
    """Write the raw log of a simulated platform, in the files of a public data set.

    The folder also holds truth.parquet and truth.json.
    """
    from harmonrank.support.storage import check_output
    from harmonrank_lab.upstream.logs import TENREC_FILES
    from harmonrank_lab.worlds.raw import KuaiRandWorld, TenrecWorld
    from harmonrank_lab.worlds.raw_simulation import TRUTH, simulate_log

    check_output(out, overwrite=overwrite, holds=TRUTH)
    size = (users, items)
    world: KuaiRandWorld | TenrecWorld
    if name == "kuairand":
        if file is not None:
            raise UsageError("--file does not apply to the world 'kuairand'; leave it out.")
        world = KuaiRandWorld(*size, redraw=redraw or 0)
    else:
        file = file or TENREC_FILES[0]
        if file not in TENREC_FILES:
            hint = did_you_mean(file, TENREC_FILES)
            raise UsageError(f"--file '{file}' is not simulated. {hint}")
        world = TenrecWorld(*size, redraw=redraw or 0, file=file)

    def on_rows(done: int) -> None:
        show.advance("simulate ", done, rows, f"{done:,} rows")

    summary = simulate_log(world, rows, out, seed=seed, overwrite=overwrite, on_rows=on_rows)
    summary["redraw"] = redraw
    show.line(f"Wrote {rows:,} rows of {size[0]:,} users and {size[1]:,} items to {out}.")
    show.result(_table(summary), summary)


def _table(summary: dict[str, Any]) -> "Table":
    from harmonrank.support import table_of

    measured = ("positives", "rate", "auc")
    rows = [(name, *(summary[part][name] for part in measured)) for name in summary["rate"]]
    names = ("objective", "positives", "rate", "AUC of the truth")
    return table_of(names, rows, dict.fromkeys(names[2:], ".4f"))
