"""`harmonrank report`."""

__all__ = ["command"]

import shlex
import sys
from pathlib import Path

import click

from harmonrank.cli.options import format_option, numbers, path_option


@click.command("report")
@click.argument("state", type=click.Path(path_type=Path))
@path_option("-o", "--output", "out", metavar="FILE", help="Write one HTML page with charts.")
@format_option
@numbers
def command(state: Path, out: Path | None, style: str, json_file: str | None, quiet: bool) -> None:
    """Show the history of a stream, which is kept in its STATE folder.

    The table has the newest batches: quality before they were learned, versions, lag. The page
    shows all of it over time, with versions, refusals, recalibrations and drift marked; a stream
    may be running meanwhile.
    """
    import msgspec

    from harmonrank.cli.show import Show
    from harmonrank.data.files import check_output, new_file
    from harmonrank.reports.facts import run_of
    from harmonrank.reports.html import DOCTYPE, plotly_script
    from harmonrank.reports.stream import StreamHistory, stream_page, stream_table
    from harmonrank.streaming.history import read_history
    from harmonrank.streaming.loop_events import BatchLearned, IntervalCompleted
    from harmonrank.streaming.settings import read_identity

    if out is not None:
        plotly_script()
        check_output(out, overwrite=True, begins=DOCTYPE)
    records, identity = read_history(state), read_identity(state)
    history = StreamHistory(
        [record for record in records if isinstance(record, IntervalCompleted)],
        [record for record in records if isinstance(record, BatchLearned)],
    )
    method = identity.settings.get("method", "")
    with Show(quiet=quiet, json_file=json_file) as show:
        if out is not None:
            run = run_of(f"harmonrank {shlex.join(sys.argv[1:])}")
            title = f"{method} on the stream {state.resolve().name}"
            with new_file(out, overwrite=True, begins=DOCTYPE) as partial:
                partial.write_text(stream_page(title, history, run), encoding="utf-8")
            show.line(f"Report: {out}")
    numbers = {
        "stream": identity.stream,
        "method": method,
        "intervals": msgspec.to_builtins(history.intervals),
        "batches": msgspec.to_builtins(history.batches),
    }
    show.result(stream_table(history), numbers, style=style)
