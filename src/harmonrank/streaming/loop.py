"""Loop: read, join, measure, learn, publish, commit, and so on until a stop is asked for.

What fails now and may go well later is tried again, with longer and longer pauses.
"""

__all__ = ["Loop"]

import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from harmonrank.streaming import loop_events as events
from harmonrank.streaming.config import LoopConfig
from harmonrank.streaming.join.aside import doubts
from harmonrank.streaming.join.intervals import Batch, Exposures
from harmonrank.streaming.learners.training import StreamTraining
from harmonrank.streaming.publishing import Publisher, open_registry
from harmonrank.streaming.sources.source import EventSource
from harmonrank.streaming.state.state import StreamState
from harmonrank.support.errors import HarmonRankError, ModelFileError, SourceError

T = TypeVar("T")

Told = Generator[events.LoopEvent, None, T]
"""Work that reports what happens, and returns something in the end."""


class StopAskedError(HarmonRankError, InterruptedError):
    """A stop was asked for while something that failed was to be tried again."""


class Retry:
    """Tries things again until they go well, patience ends, or a stop is asked for.

    Args:
        config: How long to wait.
        stop: Set by whoever asks for a stop.

    Attributes:
        waited: Seconds that were spent waiting.
    """

    def __init__(self, config: LoopConfig, stop: threading.Event) -> None:
        self._config, self._stop = config, stop
        self.waited = 0.0

    def tried(self, what: str, work: Callable[[], T]) -> Told[T]:
        """Return what comes of some work.

        Args:
            what: The source, the registry or the state.
            work: Must leave everything as it was if it fails.

        Raises:
            StopAskedError: A stop was asked for before it went well.
            HarmonRankError: It failed for too long, or in a way that no waiting mends.
        """
        pause, begun, patience = self._config.first_pause, time.monotonic(), self._config.patience
        while True:
            try:
                return work()
            # Room may be made on a disk meanwhile, a server come back, a version be rolled back.
            except (OSError, ModelFileError) as error:
                reason = _sentence(error)
                if patience is not None and time.monotonic() - begun + pause > patience:
                    raise
            yield events.RetryPlanned(what=what, reason=reason, seconds=pause)
            if self.wait(pause):
                raise StopAskedError(f"{what} failed: {reason.rstrip('.')}")
            pause = min(2 * pause, self._config.longest_pause)

    def wait(self, seconds: float) -> bool:
        """Wait, and return whether a stop is asked for."""
        begun = time.monotonic()
        asked = self._stop.wait(seconds)
        self.waited += time.monotonic() - begun
        return asked


def _sentence(error: Exception) -> str:
    if isinstance(error, HarmonRankError):
        return str(error)
    assert isinstance(error, OSError)
    where = f"'{error.filename}': " if error.filename else ""
    return f"{where}{error.strerror or error}."


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
        self._last: events.Publication | None = None
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
        yield events.StreamStopped(
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
        self._last = yield from self._published("last", lambda p: p.offered(state.training))
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
                yield events.SourceNoted(text=note)
            yield events.EventsRead(
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

    def _measure(
        self, exposures: Exposures
    ) -> Told[tuple[StreamTraining, events.IntervalCompleted]]:
        """Look at the scores of a complete interval, and recalibrate what is served if needed."""
        training, record = self.state.training, self.state.record
        after, seen = training.completed(exposures)

        def recalibrate(publisher: Publisher) -> events.Publication | None:
            made, record.tried = publisher.recalibrated(exposures, training, seen, record.tried)
            return made

        made = yield from self._published("each", recalibrate)
        event = events.IntervalCompleted(
            start=exposures.start, end=exposures.end, rows=exposures.rows.height, version=made
        )
        if seen is not None:
            psi, drift = training.stability(exposures.rows), seen.drift
            event = msgspec.structs.replace(
                event,
                moves={
                    c.column: events.ScoreMove(c.offset, c.scale, c.verdict, psi.get(c.column))
                    for c in drift.columns
                },
                replaced=list(drift.replaced),
                evidence=list(drift.evidence),
            )
        return after, event

    def _learn(self, batch: Batch) -> Told[tuple[StreamTraining, events.BatchLearned]]:
        """Score the rows of a closed interval, learn them, and publish what was learned."""
        before, training = self.state.training, self.state.training.learned(batch)
        made = yield from self._published("each", lambda p: p.offered(training))
        quality, own = training.quality, None
        if before.learner.model is not None:
            own = replace(quality, batches=quality.batches[-1:]).quality(training.schema)
        return training, events.BatchLearned(
            start=batch.start,
            end=batch.end,
            rows=batch.rows.height,
            learned=training.learned_rows - before.learned_rows,
            learned_rows=training.learned_rows,
            guard_rows=training.guard.count,
            positives={name: int(batch.rows[name].sum()) for name in training.schema.names},
            window=quality.quality(training.schema),
            batch=own,
            version=made,
            held=training.held(),
            learner=training.learner.facts(),
            lag_seconds=self._lag(),
            rows_per_second=self._rate(batch.rows.height),
            aside=self.state.join.set_aside,
        )

    def _published(
        self, when: str, work: Callable[[Publisher], events.Publication | None]
    ) -> Told[events.Publication | None]:
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
        yield events.StateCommitted(commit=number, seconds=self._committed - begun)
        yield from self._acknowledge()

    def _acknowledge(self) -> Told[None]:
        """Tell the source what is safe; if it is away, the next commit tells it too."""
        offset = self.state.record.offset
        try:
            if offset is not None:
                self._source.committed(offset)
        except SourceError as error:
            yield events.SourceNoted(text=str(error))

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
