"""What `harmonrank simulate` does for the worlds of users and items."""

__all__ = ["is_log_world", "simulate_raw_log"]

from pathlib import Path
from typing import Any

from rich.table import Table

from harmonrank.cli.show import Show
from harmonrank.errors import UsageError, did_you_mean


def is_log_world(name: str) -> bool:
    """Return whether a world's log is one of users and items."""
    return name in ("kuairand", "tenrec")


def simulate_raw_log(
    name: str,
    rows: int,
    out: Path,
    show: Show,
    *,
    seed: int,
    overwrite: bool,
    users: int | None,
    items: int | None,
    file: str | None,
    redraw: int | None,
) -> None:
    """Write raw logs and say how well the truth itself would rank them."""
    from harmonrank.data.files import check_output
    from harmonrank.data.log_worlds import KuaiRandWorld, TenrecWorld
    from harmonrank.data.logs import TENREC_FILES
    from harmonrank.evaluation.log_simulation import TRUTH, simulate_log

    check_output(out, overwrite=overwrite, holds=TRUTH)
    size = (users or 20_000, items or 5_000)
    world: KuaiRandWorld | TenrecWorld
    if name == "kuairand":
        if file is not None:
            raise UsageError("--file does not apply to the world 'kuairand'; leave it out.")
        world = KuaiRandWorld(*size, redraw=redraw or 0)
    else:
        file = file or TENREC_FILES[0]
        if file not in TENREC_FILES:
            raise UsageError(
                f"--file '{file}' is not simulated. {did_you_mean(file, TENREC_FILES)}"
            )
        world = TenrecWorld(*size, redraw=redraw or 0, file=file)
    with show:
        summary = simulate_log(
            world,
            rows,
            out,
            seed=seed,
            overwrite=overwrite,
            on_rows=lambda done: show.advance("simulate ", done, rows, f"{done:,} rows"),
        )
    summary["redraw"] = redraw
    show.line(f"Wrote {rows:,} rows of {size[0]:,} users and {size[1]:,} items to {out}.")
    show.result(_table(summary), summary)


def _table(summary: dict[str, Any]) -> Table:
    table = Table("objective", "positives", "rate", "AUC of the truth", box=None)
    for name, rate in summary["rate"].items():
        best = summary["auc"][name]
        table.add_row(name, f"{summary['positives'][name]:,}", f"{rate:.4f}", f"{best:.4f}")
    return table
