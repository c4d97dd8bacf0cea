"""`harmonrank stream`."""

__all__ = ["command"]

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import click

from harmonrank.cli.parts.options import path_option
from harmonrank.cli.parts.stream_options import StreamChoice, stopped_by_signals, stream_options
from harmonrank.cli.parts.verb import verb
from harmonrank.support.errors import UsageError

_OPEN = ("-", "")


@verb("stream", example="harmonrank stream --source events --registry registry --state state")
@stream_options
@path_option("--registry", metavar="DIR", help="Where versions are published.")
@click.option("--once", is_flag=True, help="Read what is there, publish and stop.")
@click.option(
    "--backfill",
    nargs=2,
    metavar="FROM TO",
    help="Replay the events from the first time on, up to the second; - for no bound.",
)
@click.option(
    "--metrics",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Answer /metrics for Prometheus on this machine; 0 takes any port.",
)
def command(
    choice: StreamChoice,
    registry: Path | None,
    once: bool,
    backfill: tuple[str, str] | None,
    metrics: int | None,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Learn from exposure and feedback events, and publish a fresh model every interval.

    Events are joined to labelled rows, scored, then learned. Each model passes the guardrails of
    the registry, which is made if it is not there. SIGTERM finishes the batch, commits and stops;
    the same command goes on from there, as it does after a crash. --json writes a line per event.

    With --backfill a period is replayed into a fresh state, without waiting for anything, and the
    last model is published if a registry is named. The state and its model are those that a stream
    with the same options had when its newest event was older than TO, bit for bit; the same
    command without --backfill goes on from it. Run again after a kill, it goes on. FROM and TO are
    dates or times in UTC, as 2026-01-31T18:00.
    """
    from harmonrank.cli.parts.stream_show import StreamShow
    from harmonrank.streaming.metrics import StreamTotals, metrics_endpoint, stream_metrics
    from harmonrank.streaming.sources.source import Period
    from harmonrank.streaming.stream import stream

    if registry is None and backfill is None:
        raise UsageError("Missing option '--registry': name the folder of versions.")
    schema, config, totals = choice.schema(quiet=quiet), choice.config(), StreamTotals()
    period, loop = None, choice.loop(once=once)
    if backfill is not None:
        period, loop = Period(*map(_time, backfill)), choice.loop(once=True, publish="last")
    with ExitStack() as stack:
        show = stack.enter_context(StreamShow(quiet=quiet, json_file=json_file, totals=totals))
        if metrics is not None:
            text = lambda: stream_metrics(totals)  # noqa: E731
            show.line(f"Metrics: {stack.enter_context(metrics_endpoint(metrics, text))}")
        stop = stack.enter_context(stopped_by_signals())
        address, state = choice.source, choice.state
        for event in stream(
            address, schema, config, state, registry=registry, loop=loop, stop=stop, period=period
        ):
            show.event(event)


def _time(text: str) -> datetime | None:
    if text in _OPEN:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--backfill takes times such as 2026-01-31T18:00, or - for none. Got '{text}'."
        ) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
