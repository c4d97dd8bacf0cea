"""`harmonrank lab bench`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.parts import Show, Verb, path_option, shown


@click.command("bench", cls=Verb)
@click.argument("what", default="all", metavar="[rank|metrics|train|score|growth|serve|all]")
@click.option("--quick", is_flag=True, help="Few rows and repeats, to see that all works.")
@path_option("--markdown", metavar="FILE", help="Also write the table as Markdown.")
@shown
def command(what: str, quick: bool, markdown: Path | None, show: Show) -> None:
    """Time ours against peers in this process, in turn; print medians.

    Peers are torchsort, PyTorch eager, torch.compile, scikit-learn and LibAUC; one
    that is not installed is left out. `growth` shows time and memory by rows and objectives;
    `serve` asks a service on this machine from another process, beside a plain FastAPI server.
    """
    from harmonrank.support.storage import check_output, new_file
    from harmonrank_lab import bench
    from harmonrank_lab.bench._run import TITLE, bench_table, seconds_text

    if markdown is not None:
        check_output(markdown, overwrite=True, begins=TITLE)

    def on_event(event: bench.CaseStarted | bench.CaseEnded) -> None:
        if isinstance(event, bench.CaseStarted):
            show.advance("bench ", event.index, event.total, event.name)
        elif isinstance(event.result, bench.Failure):
            show.line(f"{event.result.name} failed: {event.result.error}")
        elif isinstance(event.result, bench.Result):
            done, took = event.result, seconds_text(event.result.ours_seconds)
            show.line(f"{event.place}, {done.rows:,} rows: {took}")

    report = bench.run(what, bench.QUICK if quick else bench.FULL, on_event=on_event)
    table = bench_table(report)
    if markdown is not None:
        with new_file(markdown, overwrite=True, begins=TITLE) as partial:
            partial.write_text(f"{TITLE}\n\n{table.to_markdown()}\n", encoding="utf-8")
    show.result(table, report.to_dict())
    if report.failures:
        raise SystemExit(1)
