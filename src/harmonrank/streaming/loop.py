"""Loop: read, join, measure, learn, publish, commit, and so on until a stop is asked for."""

__all__ = ["Loop"]

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from harmonrank.streaming.config import LoopConfig
from harmonrank.streaming.join.intervals import Batch, Exposures
from harmonrank.streaming.loop_events import (
    EventsRead,
    Publication,
    SourceNoted,
    StateCommitted,
    StreamStopped,
)
from harmonrank.streaming.pace import Pace
from harmonrank.streaming.publishing import Publisher, open_registry
from harmonrank.streaming.retry import Retry, StopAskedError, Told
from harmonrank.streaming.sources.source import EventSource
from harmonrank.streaming.state.state import StreamState
from harmonrank.streaming.steps import (
    batch_event,
    interval_event,
    offered,
    recalibrated_version,
)
from harmonrank.support.errors import SourceError


class Loop:
    """The loop of a stream, with what it counts between two commits.

    Args:
        connect: Opens the source of the events.
        state: From which it goes on.
        registry: Where versions go; without one nothing is published.
        config: How it runs.
        stop: Set it to stop after the present step, with everything committed.
    """

    def __init__(
        self,
        connect: Callable[[], EventSource],
        state: StreamState,
        registry: Path | None,
        config: LoopConfig,
        stop: threading.Event,
    ) -> None:
        self._connect, self._registry = connect, registry
        self._state, self._config, self._stop = state, config, stop
        self._publisher: Publisher | None = None
        self._retry = Retry(config, stop)
        self._pace = Pace(state.join, state.training.config.lateness, self._retry)
        self._last: Publication | None = None
        self._dirty = False
        self._committed = time.monotonic()

    def run(self) -> Told[None]:
        """Yield what happens until the end."""
        try:
            self._source = yield from self._retry.tried("the source", self._connect)
            with closing(self._source):
                yield from self._run()
            why = "stopped as asked" if self._stop.is_set() else "nothing is left to read"
        except StopAskedError as asked:
            why = f"stopped as asked while {asked}; what no commit knows of is done again"
        state = self._state
        yield StreamStopped(
            why=why,
            commit=state.commits.number,
            learned_rows=state.training.learned_rows,
            version=self._last,
        )

    def _run(self) -> Told[None]:
        yield from self._open()
        while not self._stop.is_set():
            if self._state.steps:
                yield from self._step()
            elif not (yield from self._read()):
                if self._config.once:
                    break
                self._retry.wait(self._config.poll_seconds)
        yield from self._finish()

    def _finish(self) -> Told[None]:
        """Publish what was only to be published at the end, and commit what no commit knows of."""
        publisher, training = self._publisher, self._state.training
        if publisher is not None and self._config.publish == "last":
            self._last = yield from self._retry.tried(
                "the registry", lambda: offered(publisher, training)
            )
            self._count(publisher, self._last)
            self._dirty |= self._last is not None
        if self._dirty or self._state.aside.held is not None:
            yield from self._commit(whole=True)

    def _open(self) -> Told[None]:
        path, record = self._registry, self._state.record
        if path is not None:
            registry = yield from self._retry.tried("the registry", lambda: open_registry(path))
            self._publisher = Publisher(registry, self._state.identity.stream, record.seen)
        # A killed run may have committed and not told so.
        yield from self._acknowledge()

    def _read(self) -> Told[bool]:
        """Join the next events; return whether there were any."""
        state, most = self._state, self._config.most
        offset = state.record.offset
        try:
            chunk = yield from self._retry.tried(
                "the source", lambda: self._source.read(offset, most)
            )
        except StopAskedError:
            return False
        if chunk is not None:
            self._dirty, before = True, self._pace.aside()
            state.join.add(chunk.events)
            state.steps += state.join.ready()
            state.aside.add(state.join.take_aside())
            total = state.record.events + chunk.events.height
            state.record = msgspec.structs.replace(state.record, offset=chunk.offset, events=total)
            for note in (*chunk.notes, *self._pace.doubts(before, chunk.events.height)):
                yield SourceNoted(text=note)
            yield EventsRead(
                events=chunk.events.height,
                total=total,
                waiting=self._waiting(),
                watermark=state.join.watermark,
                lag_seconds=self._pace.lag_seconds(),
                aside=self._pace.aside(),
            )
        if self._dirty and time.monotonic() - self._committed > self._config.commit_seconds:
            yield from self._commit(whole=False)
        return chunk is not None

    def _step(self) -> Told[None]:
        """Work on the next complete or closed interval; commit what came of it."""
        step = self._state.steps[0]
        self._dirty = True
        if isinstance(step, Batch):
            yield from self._learn(step)
            yield from self._commit(whole=True)
        else:
            yield from self._measure(step)

    def _measure(self, exposures: Exposures) -> Told[None]:
        """Look at the scores of a complete interval, and recalibrate what is served if needed."""
        state, publisher = self._state, self._publisher
        training, tried = state.training, state.record.tried
        after, seen = training.completed(exposures)
        event = interval_event(training, exposures, seen)
        if publisher is not None and self._config.publish == "each":
            made, tried = yield from self._retry.tried(
                "the registry",
                lambda: recalibrated_version(publisher, exposures, training, seen, tried),
            )
            state.record = msgspec.structs.replace(state.record, tried=tried)
            event = msgspec.structs.replace(event, version=made)
            self._count(publisher, made)
        state.training = after
        state.steps.pop(0)
        state.history.add(event)
        yield event
        if event.version is not None:
            yield from self._commit(whole=False)

    def _learn(self, batch: Batch) -> Told[None]:
        """Score the rows of a closed interval, learn them, and publish what was learned."""
        state, publisher, made = self._state, self._publisher, None
        training = state.training.learned(batch)
        if publisher is not None and self._config.publish == "each":
            made = yield from self._retry.tried(
                "the registry", lambda: offered(publisher, training)
            )
            self._count(publisher, made)
        event = batch_event(
            state.training,
            training,
            batch,
            version=made,
            lag_seconds=self._pace.lag_seconds(),
            rows_per_second=self._pace.rate(batch.rows.height),
            aside=self._pace.aside(),
        )
        state.training = training
        state.steps.pop(0)
        state.history.add(event)
        yield event

    def _count(self, publisher: Publisher, made: Publication | None) -> None:
        if made is not None:
            record = self._state.record
            self._state.record = msgspec.structs.replace(
                record,
                seen=publisher.seen,
                published=record.published + (made.refused is None),
                refused=record.refused + (made.refused is not None),
            )

    def _commit(self, *, whole: bool) -> Told[None]:
        begun = time.monotonic()
        number = yield from self._retry.tried("the state", lambda: self._state.commit(whole=whole))
        self._dirty, self._committed = False, time.monotonic()
        yield StateCommitted(commit=number, seconds=self._committed - begun)
        yield from self._acknowledge()

    def _acknowledge(self) -> Told[None]:
        """Tell the source what is safe; if it is away, the next commit tells it too."""
        offset = self._state.record.offset
        try:
            if offset is not None:
                self._source.committed(offset)
        except SourceError as error:
            yield SourceNoted(text=str(error))

    def _waiting(self) -> int | None:
        try:
            return self._source.waiting()
        except SourceError:
            return None
