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
from harmonrank.streaming.sources.source import EventSource, open_source
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
    # Rows of a request judge a model together, whatever the schema says.
    schema = replace(schema, request=schema.request or "request")
    with open_state(state, address, schema, config) as (found, swept):
        yield StreamStarted(
            stream=found.identity.stream,
            method=config.method,
            objectives=list(schema.names),
            commit=found.commits.number,
            events=found.record.events,
            learned_rows=found.record.learned_rows,
            published=found.record.published,
            refused=found.record.refused,
            swept=swept,
        )
        yield from Loop(
            connect or (lambda: open_source(address, schema)),
            found,
            registry,
            loop or LoopConfig(),
            stop or threading.Event(),
        ).run()
