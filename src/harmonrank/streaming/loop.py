"""Loop: read, join, measure, learn, publish, commit, and so on until a stop is asked for."""

__all__ = ["Loop"]

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harmonrank.streaming.config import LoopConfig
from harmonrank.streaming.join.aside import doubts
from harmonrank.streaming.join.intervals import Batch, Exposures
from harmonrank.streaming.loop_events import (
    BatchLearned,
    EventsRead,
    IntervalCompleted,
    Publication,
    SourceNoted,
    StateCommitted,
    StreamStopped,
)
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
from harmonrank.streaming.training import StreamTraining
from harmonrank.support.errors import SourceError


@dataclass
class Loop:
    """The loop of a stream, with what it counts between two commits.

    Args:
        connect: Opens the source of the events.
        state: From which it goes on.
        registry: Where versions go; without one nothing is published.
        config: How it runs.
        stop: Set it to stop after the present step, with everything committed.
    """

    connect: Callable[[], EventSource]
    state: StreamState
    registry: Path | None
    config: LoopConfig
    stop: threading.Event

    def __post_init__(self) -> None:
        self._publisher: Publisher | None = None
        self._retry = Retry(self.config, self.stop)
        self._last: Publication | None = None
        self._dirty = False
        self._committed = self._learned = time.monotonic()

    def run(self) -> Told[None]:
        """Yield what happens until the end."""
        try:
            self._source = yield from self._retry.tried("the source", self.connect)
            with closing(self._source):
                yield from self._run()
            why = "stopped as asked" if self.stop.is_set() else "nothing is left to read"
        except StopAskedError as asked:
            why = f"stopped as asked while {asked}; what no commit knows of is done again"
        yield StreamStopped(
            why=why,
            commit=self.state.commits.number,
            learned_rows=self.state.training.learned_rows,
            version=self._last,
        )

    def _run(self) -> Told[None]:
        path, state = self.registry, self.state
        if path is not None:
            registry = yield from self._retry.tried("the registry", lambda: open_registry(path))
            self._publisher = Publisher(registry, state.identity.stream, state.record.seen)
        # A killed run may have committed and not told so.
        yield from self._acknowledge()
        while not self.stop.is_set():
            if state.steps:
                yield from self._step(state.steps[0])
            elif not (yield from self._read()):
                if self.config.once:
                    break
                self._retry.wait(self.config.poll_seconds)
        self._last = yield from self._published("last", lambda p: offered(p, state.training))
        if self._dirty or self._last is not None or state.aside.held is not None:
            yield from self._commit(whole=True)

    def _read(self) -> Told[bool]:
        """Join the next events; return whether there were any."""
        state, most = self.state, self.config.most
        offset = state.record.offset
        try:
            chunk = yield from self._retry.tried(
                "the source", lambda: self._source.read(offset, most)
            )
        except StopAskedError:
            return False
        if chunk is not None:
            self._dirty, before, count = True, state.join.set_aside, chunk.events.height
            state.join.add(chunk.events)
            state.steps += state.join.ready()
            state.aside.add(state.join.take_aside())
            state.record.offset = chunk.offset
            state.record.events += count
            for note in (*chunk.notes, *doubts(before, state.join.set_aside, count)):
                yield SourceNoted(text=note)
            yield EventsRead(
                events=count,
                total=state.record.events,
                waiting=self._waiting(),
                watermark=state.join.watermark,
                lag_seconds=self._lag(),
                aside=state.join.set_aside,
            )
        if self._dirty and time.monotonic() - self._committed > self.config.commit_seconds:
            yield from self._commit(whole=False)
        return chunk is not None

    def _step(self, step: Exposures) -> Told[None]:
        """Work on a complete or closed interval; commit what came of it."""
        self._dirty = True
        work = self._learn(step) if isinstance(step, Batch) else self._measure(step)
        training, event = yield from work
        self.state.training = training
        self.state.steps.pop(0)
        self.state.history.add(event)
        yield event
        if isinstance(step, Batch) or event.version is not None:
            yield from self._commit(whole=isinstance(step, Batch))

    def _measure(self, exposures: Exposures) -> Told[tuple[StreamTraining, IntervalCompleted]]:
        """Look at the scores of a complete interval, and recalibrate what is served if needed."""
        training, record = self.state.training, self.state.record
        after, seen = training.completed(exposures)

        def recalibrate(publisher: Publisher) -> Publication | None:
            made, record.tried = recalibrated_version(
                publisher, exposures, training, seen, record.tried
            )
            return made

        made = yield from self._published("each", recalibrate)
        event = interval_event(training, exposures, seen)
        return after, msgspec.structs.replace(event, version=made)

    def _learn(self, batch: Batch) -> Told[tuple[StreamTraining, BatchLearned]]:
        """Score the rows of a closed interval, learn them, and publish what was learned."""
        before, training = self.state.training, self.state.training.learned(batch)
        made = yield from self._published("each", lambda p: offered(p, training))
        return training, batch_event(
            before,
            training,
            batch,
            version=made,
            lag_seconds=self._lag(),
            rows_per_second=self._rate(batch.rows.height),
            aside=self.state.join.set_aside,
        )

    def _published(
        self, when: str, work: Callable[[Publisher], Publication | None]
    ) -> Told[Publication | None]:
        """Return what the registry said, if it is to be asked `each` time, or the `last`."""
        publisher, record = self._publisher, self.state.record
        if publisher is None or self.config.publish != when:
            return None
        made = yield from self._retry.tried("the registry", lambda: work(publisher))
        if made is not None:
            record.seen = publisher.seen
            record.published += made.refused is None
            record.refused += made.refused is not None
        return made

    def _commit(self, *, whole: bool) -> Told[None]:
        begun = time.monotonic()
        number = yield from self._retry.tried("the state", lambda: self.state.commit(whole=whole))
        self._dirty, self._committed = False, time.monotonic()
        yield StateCommitted(commit=number, seconds=self._committed - begun)
        yield from self._acknowledge()

    def _acknowledge(self) -> Told[None]:
        """Tell the source what is safe; if it is away, the next commit tells it too."""
        offset = self.state.record.offset
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

    def _lag(self) -> float | None:
        """Return the seconds from the newest event to now; None before the first event."""
        newest = self.state.join.newest
        return None if newest is None else (datetime.now(UTC) - newest).total_seconds()

    def _rate(self, rows: int) -> float | None:
        """Return rows per second since the last batch, without the time that was waited."""
        now = time.monotonic()
        busy = now - self._learned - self._retry.waited
        self._learned, self._retry.waited = now, 0.0
        return rows / busy if busy > 0 else None
