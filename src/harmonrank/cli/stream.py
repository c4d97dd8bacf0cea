"""`harmonrank stream`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.parts.options import path_option
from harmonrank.cli.parts.stream_options import StreamChoice, stopped_by_signals, stream_options


@click.command("stream")
@stream_options
@path_option("--registry", required=True, metavar="DIR", help="Where versions are published.")
@click.option("--once", is_flag=True, help="Take what is there, publish and stop.")
@click.option(
    "--metrics",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Answer /metrics for Prometheus on this machine; 0 takes any port.",
)
def command(
    choice: StreamChoice,
    registry: Path,
    once: bool,
    metrics: int | None,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Learn from exposure and feedback events, and publish a fresh model every interval.

    Events are joined to labelled rows, scored, then learned. Each model passes the guardrails of
    the registry, which is made if it is not there. SIGTERM finishes the batch, commits and stops;
    the same command goes on from there, as it does after a crash. --json writes a line per event.
    """
    from contextlib import ExitStack

    from harmonrank.cli.parts.stream_show import StreamShow
    from harmonrank.streaming.metrics import metrics_endpoint, stream_metrics
    from harmonrank.streaming.stream import stream
    from harmonrank.streaming.totals import StreamTotals

    schema, config, totals = choice.schema(quiet=quiet), choice.config(), StreamTotals()
    parts = (choice.source, schema, config, choice.state)
    with ExitStack() as stack:
        show = StreamShow(quiet=quiet, json_file=json_file, totals=totals)
        stack.enter_context(show)
        if metrics is not None:
            text = lambda: stream_metrics(totals)  # noqa: E731
            show.line(f"Metrics: {stack.enter_context(metrics_endpoint(metrics, text))}")
        stop = stack.enter_context(stopped_by_signals())
        for event in stream(*parts, registry=registry, loop=choice.loop(once=once), stop=stop):
            show.event(event)
