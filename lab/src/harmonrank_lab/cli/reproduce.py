"""`harmonrank lab reproduce`."""

__all__ = ["command"]

import shlex
from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts import Show, Verb, figures_option, format_option, path_option, shown
from harmonrank.support import BatchEnded, FitStep
from harmonrank_lab.cli.predictor_options import choice_option
from harmonrank_lab.events import CellEnded, CellStarted


@click.command("reproduce", cls=Verb)
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--data", metavar="NAME", help="elive, qkvideo, conflict, or a folder of files.")
@click.option("--quick", is_flag=True, help="Few rows and epochs: all tables in some minutes.")
@choice_option(
    "--protocol", ("paper", "tuned"), "SGD, 500 epochs; or Adam, each method's own defaults.",
    default=None,
)  # fmt: skip
@choice_option("--losses", ("mean", "sum"), "Over a batch, by the paper protocol.", default=None)
@click.option("--rows", type=int, help="Training rows; half as many test rows. [1000000]")
@click.option("--seeds", type=int, help="How often each experiment is run. [3]")
@click.option("--epochs", type=int, help="In place of the protocol's own.")
@click.option("--steps", type=int, help="At most so many, by the tuned protocol.")
@click.option("--batch-rows", type=int, help="Rows per step, in place of the protocol's own.")
@click.option(
    "--learning-rate", type=click.FloatRange(0, min_open=True), metavar="FLOAT",
    help="In place of the protocol's own.",
)  # fmt: skip
@path_option(
    "-o", "--output", "out", default=Path("reproduction"), show_default=True,
    help="Folder of report.html, reproduction.md and results.json; tables add up in it.",
)  # fmt: skip
@path_option("--runs", help="Folder that keeps finished experiments. [runs in the output folder]")
@path_option("--markdown", metavar="FILE", help="Also write the Markdown, under the file's head.")
@figures_option
@format_option
@shown
def command(
    tables: tuple[str, ...],
    data: str | None,
    quick: bool,
    out: Path,
    runs: Path | None,
    markdown: Path | None,
    figures: Path | None,
    style: str,
    show: Show,
    **changes: Any,
) -> None:
    """Make the paper's tables again and judge its claims.

    TABLE is main, losses, components, buckets, training-speed, inference, skew, pareto, relations,
    online or all, which is also meant if none is named. Each table shows the paper's figure,
    ours with its interval over seeds and the distance to the best possible; each claim has held,
    did not hold, or cannot be told.

    A command that was stopped goes on where it was when it is repeated. Its folder adds up the
    tables of several commands, so that each can have the rows and epochs that it is worth.
    """
    from dataclasses import replace

    from harmonrank.cli.parts import can_draw
    from harmonrank.reports import DOCTYPE, check_report, run_of
    from harmonrank.support.storage import check_output
    from harmonrank_lab.paper_tables import PAPER, QUICK, report, reproduce

    given = {name: value for name, value in changes.items() if value is not None}
    settings = replace(QUICK if quick else PAPER, **given)
    wanted = tables or ("all",)
    how = _command(wanted, data, quick, given)
    check_output(out / report.RESULTS, overwrite=True)
    check_output(out / report.REPORT, overwrite=True, begins=DOCTYPE)
    for path in filter(None, [out / report.PAGE, markdown]):
        report.with_head(check_output(path, overwrite=True), "")
    check_report(None, figures)
    report.add_results(out, ())
    progress = _Progress(show)
    made = reproduce(
        wanted, settings, runs=runs or out / "runs", data=data, command=how, on_event=progress.event
    )
    if progress.kept:
        show.line(f"{progress.kept} experiments were kept from an earlier run.")
    merged = report.add_results(out, made)
    seeds = f"0 to {settings.seeds - 1}" if settings.seeds > 1 else "0"
    run = run_of("\n".join(dict.fromkeys(table.command for table in merged)), seeds)
    written = report.write_reproduction(
        out, merged, run, page=can_draw(show), markdown=markdown, figures=figures
    )
    for path in written:
        show.line(f"Wrote {path}")
    table, text = report.reproduction_tables(made), report.reproduction_markdown(made, run)
    numbers = {"tables": [table.to_dict() for table in made]}
    show.result(table if style == "table" else text, numbers)


def _command(tables: tuple[str, ...], data: str | None, quick: bool, given: dict[str, Any]) -> str:
    """Return how the tables are made; where they were written to is nobody else's business."""
    parts = ["harmonrank", "lab", "reproduce", *tables]
    if data is not None:
        parts += ["--data", Path(data).name]
    parts += ["--quick"] * quick
    for name, value in given.items():
        text = f"{value:g}" if isinstance(value, float) else value
        parts += [f"--{name.replace('_', '-')}", text]
    return shlex.join(map(str, parts))


class _Progress:
    """A bar over all experiments that moves within each; a plain line as each ends."""

    def __init__(self, show: Show) -> None:
        self._show, self.kept, self._cell = show, 0, CellStarted("", 0, 1)

    def event(self, event: Any) -> None:
        """Show an event by its type."""
        if isinstance(event, CellStarted):
            self._cell = event
            self._advance(0)
        elif isinstance(event, BatchEnded):
            self._advance((event.epoch + (event.step + 1) / event.steps) / event.epochs)
        elif isinstance(event, FitStep):
            self._advance(event.step / max(event.steps, 1))
        elif isinstance(event, CellEnded):
            self.kept += event.kept
            if not event.kept:
                self._show.line(f"{event.place}: {_told(event)}")

    def _advance(self, share: float) -> None:
        done, name = self._cell.index + min(share, 1), self._cell.name
        self._show.advance("reproduce ", done, self._cell.total, name[:40])


def _told(event: CellEnded) -> str:
    if "error" in event.result:
        return f"failed: {event.result['error']}"
    areas = event.result.get("auc")
    return (f"AUC-sum {sum(areas):.4f} in " if areas else "done in ") + f"{event.seconds:.1f} s"
