"""`harmonrank report`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.parts.options import Show, format_option, path_option, shown
from harmonrank.cli.parts.verb import verb


@verb("report", example="harmonrank report state -o stream.html")
@click.argument("state", type=click.Path(path_type=Path))
@path_option("-o", "--output", "out", metavar="FILE", help="Write one HTML page with charts.")
@format_option
@shown
def command(state: Path, out: Path | None, style: str, show: Show) -> None:
    """Show the history of a stream, which is kept in its STATE folder.

    The table has the newest batches: quality before they were learned, versions, lag. The page
    shows all of it over time, with versions, refusals, recalibrations and drift marked; a stream
    may be running meanwhile.
    """
    import msgspec

    from harmonrank.reports.facts import run_of
    from harmonrank.reports.html import check_page, write_page
    from harmonrank.reports.stream import StreamHistory, stream_page, stream_table
    from harmonrank.streaming.loop_events import BatchLearned, IntervalCompleted
    from harmonrank.streaming.state.files import read_history, read_identity

    check_page(out)
    records, identity = read_history(state), read_identity(state)
    history = StreamHistory(
        [record for record in records if isinstance(record, IntervalCompleted)],
        [record for record in records if isinstance(record, BatchLearned)],
    )
    method = identity.settings.get("method", "")
    if out is not None:
        title = f"{method} on the stream {state.resolve().name}"
        write_page(stream_page(title, history, run_of()), out)
        show.line(f"Report: {out}")
    numbers = {
        "stream": identity.stream,
        "method": method,
        "intervals": msgspec.to_builtins(history.intervals),
        "batches": msgspec.to_builtins(history.batches),
    }
    show.result(stream_table(history), numbers, style=style)
