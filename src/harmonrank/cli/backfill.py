"""`harmonrank backfill`."""

__all__ = ["command"]

from datetime import datetime
from pathlib import Path

import click

from harmonrank.cli.parts.options import path_option
from harmonrank.cli.parts.stream_options import StreamChoice, stopped_by_signals, stream_options
from harmonrank.support.errors import UsageError


@click.command("backfill")
@stream_options
@click.option("--from", "since", metavar="TIME", help="Leave older events out; else all.")
@click.option("--to", "until", metavar="TIME", help="End before the first event as late as this.")
@path_option(
    "--registry", metavar="DIR", help="Publish the last model there; else nothing is published."
)
def command(
    choice: StreamChoice,
    registry: Path | None,
    since: str | None,
    until: str | None,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Replay a period of events into a fresh state, without waiting for anything.

    The state and its model are those that `harmonrank stream` with the same options had when its
    newest event was older than --to, bit for bit; the same command with `stream` goes on from it.
    Run again after a kill, it goes on. TIME is a date or a time in UTC, as 2026-01-31T18:00.
    """
    from harmonrank.cli.parts.stream_show import StreamShow
    from harmonrank.streaming.period import Period
    from harmonrank.streaming.stream import stream
    from harmonrank.streaming.totals import StreamTotals

    schema = choice.schema(quiet=quiet)
    period = Period(_time(since, "--from"), _time(until, "--to"))
    show = StreamShow(quiet=quiet, json_file=json_file, totals=StreamTotals())
    with show, stopped_by_signals() as stop:
        for event in stream(
            choice.source,
            schema,
            choice.config(),
            choice.state,
            registry=registry,
            loop=choice.loop(once=True, publish="last"),
            stop=stop,
            period=period,
        ):
            show.event(event)


def _time(text: str | None, option: str) -> datetime | None:
    from datetime import UTC

    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} must be a date or a time such as 2026-01-31T18:00. Got '{text}'."
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
