"""Stream: from events to published versions; a generator of what happens.

Every result is a function of the sequence of events. The position in the source and the state that
came of it are committed together, so a process that is killed at any moment goes on as if nothing
had been.
"""

__all__ = ["stream"]

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from harmonrank.data import Schema
from harmonrank.streaming.config import LoopConfig, StreamConfig
from harmonrank.streaming.loop import Loop
from harmonrank.streaming.loop_events import LoopEvent, StreamStarted
from harmonrank.streaming.sources.source import EventSource, Period, PeriodSource, open_source
from harmonrank.streaming.state.state import open_state
from harmonrank.support.errors import UsageError


def stream(
    address: str,
    schema: Schema,
    config: StreamConfig,
    state: Path,
    *,
    registry: Path | None,
    loop: LoopConfig | None = None,
    period: Period | None = None,
    stop: threading.Event | None = None,
    connect: Callable[[], EventSource] | None = None,
) -> Iterator[LoopEvent]:
    """Run a stream, and yield what happens.

    Args:
        address: Of the source of the events: a folder, or as `open_source` takes it.
        schema: Which column is what.
        config: What decides the results.
        state: The folder of the state; made if it is not there.
        registry: Where versions go; made if it is not there. Without one nothing is published.
        loop: How the loop runs.
        period: Events of this time alone, as for a backfill.
        stop: Set it to stop after the present step, with everything committed.
        connect: Opens the source, if not by its address.

    Raises:
        UsageError: The state was begun with other settings, or another process is at work on it.
        HarmonRankError: Something failed for longer than the loop's patience. Nothing is lost.
    """
    schema.require_plain("A stream")
    if schema.sample_weight is not None:
        raise UsageError(
            f"Rows of a stream have no weights, but the schema names '{schema.sample_weight}' as "
            "their column; leave `sample_weight` out."
        )

    def opens() -> EventSource:
        source = open_source(address, schema) if connect is None else connect()
        return source if period is None else PeriodSource(source, period)

    # Rows of a request judge a model together, whatever the schema says.
    # Events may miss their user, or tell another than their request had.
    schema = replace(schema, request=schema.request or "request", user=None)
    with open_state(state, address, schema, config) as (opened, swept):
        yield StreamStarted(
            stream=opened.identity.stream,
            method=config.method,
            objectives=list(schema.names),
            commit=opened.commits.number,
            events=opened.record.events,
            learned_rows=opened.training.learned_rows,
            published=opened.record.published,
            refused=opened.record.refused,
            swept=swept,
        )
        yield from Loop(
            opens, opened, registry, loop or LoopConfig(), stop or threading.Event()
        ).run()
