"""`harmonrank stream`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.options import path_option
from harmonrank.cli.stream_options import stream_options


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
    source: str,
    state: Path,
    registry: Path,
    method: str,
    settings: tuple[str, ...],
    seed: int,
    every: str,
    windows: tuple[str, ...],
    lateness: str,
    patience: str | None,
    chunk: int,
    once: bool,
    metrics: int | None,
    json_file: str | None,
    quiet: bool,
    **column_options: Any,
) -> None:
    """Learn from exposure and feedback events, and publish a fresh model every interval.

    Events are joined to labelled rows, scored, then learned. Each model passes the guardrails of
    the registry, which is made if it is not there. SIGTERM finishes the batch, commits and stops;
    the same command goes on from there, as it does after a crash. --json writes a line per event.
    """
    from contextlib import ExitStack

    from harmonrank.cli.stream_options import config_of, schema_of_stream, stopped_by_signals
    from harmonrank.cli.stream_show import StreamShow
    from harmonrank.streaming.config import LoopConfig
    from harmonrank.streaming.endpoint import metrics_endpoint
    from harmonrank.streaming.metrics_text import stream_metrics
    from harmonrank.streaming.stream import stream
    from harmonrank.streaming.totals import StreamTotals
    from harmonrank.streaming.windows import parse_duration

    schema = schema_of_stream(source, state, column_options, quiet=quiet)
    config = config_of(method, settings, seed, every, windows, lateness)
    given = "1m" if patience is None and once else patience
    seconds = None if given is None else parse_duration(given, "--patience").total_seconds()
    loop, totals = LoopConfig(once=once, most=chunk, patience=seconds), StreamTotals()
    with ExitStack() as stack:
        show = StreamShow(quiet=quiet, json_file=json_file, totals=totals)
        stack.enter_context(show)
        if metrics is not None:
            text = lambda: stream_metrics(totals)  # noqa: E731
            show.line(f"Metrics: {stack.enter_context(metrics_endpoint(metrics, text))}")
        stop = stack.enter_context(stopped_by_signals())
        for event in stream(source, schema, config, state, registry=registry, loop=loop, stop=stop):
            show.event(event)
