"""Publishing: a stream's candidates become versions of a registry, each exactly once."""

__all__ = [
    "Publisher",
    "batch_event",
    "interval_event",
    "offered",
    "open_registry",
    "recalibrated_version",
]

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from harmonrank.data import Log, read_log
from harmonrank.fusion import Method
from harmonrank.fusion.points import with_points_of
from harmonrank.registry import Registry, Version
from harmonrank.registry.registry import SETTINGS
from harmonrank.streaming.join.intervals import Batch, Exposures
from harmonrank.streaming.learners.prequential import Prequential
from harmonrank.streaming.learners.training import Seen, StreamTraining, agreed, seen_by
from harmonrank.streaming.loop_events import (
    BatchLearned,
    IntervalCompleted,
    Publication,
    ScoreMove,
)
from harmonrank.streaming.state.state import TriedRecalibration
from harmonrank.support.errors import DataError


def open_registry(path: Path) -> Registry:
    """Return the registry of a folder; one with default guardrails is made if none is there.

    What a killed run was writing there is removed.
    """
    registry = Registry(path) if (path / SETTINGS).is_file() else Registry.create(path)
    registry.sweep()
    return registry


@dataclass(frozen=True, eq=False)
class ServedModel:
    """The model of a version, and the time whose rows it has learned."""

    number: int
    model: Method
    window: str


class Publisher:
    """Offers candidates to a registry.

    Each candidate has a note that names the stream and the interval it comes from, and no other
    has. A stream that was killed after it published, and before it committed, comes to the same
    candidate again, finds its note, and takes what the registry said then.

    Args:
        registry: Where versions go.
        stream: The identity of the stream.
        seen: The newest version that a commit of this stream knows of; its own later ones are
            looked for.
    """

    def __init__(self, registry: Registry, stream: str, seen: int = 0) -> None:
        self._registry, self._stream, self.seen = registry, stream, seen
        self._loaded: ServedModel | None = None

    def note(self, end: datetime, *, recalibrated: bool = False) -> str:
        """Return the note of the candidate that comes of an interval."""
        kind = "recalibrated at" if recalibrated else "learned to"
        return f"stream {self._stream}, {kind} {end:%Y-%m-%dT%H:%M:%S}"

    def before(self, note: str) -> ServedModel | None:
        """Return what was current before the candidate of a note; None before the first version.

        It is current still, unless an earlier run has published that candidate.
        """
        made = self._found(note)
        number = self._registry.current() if made is None else made.parent
        if number is None:
            return None
        if self._loaded is None or self._loaded.number != number:
            window = self._registry.version(number).window
            self._loaded = ServedModel(number, self._registry.load(number), window)
        return self._loaded

    def publish(
        self, candidate: Method, rows: Log, note: str, window: str, *, recalibrated: bool = False
    ) -> Publication:
        """Publish a candidate, unless an earlier run did so already.

        Args:
            candidate: The model.
            rows: What the guardrails measure; labelled, but for a recalibration.
            note: By which it is known.
            window: The time whose rows the model has learned.
            recalibrated: Whether it is the current version, recalibrated.
        """
        version, served = self._found(note), self.before(note)
        if served is not None:
            # Who serves an operating point by its name goes on with the new version.
            candidate = with_points_of(candidate, served.model)
        if version is None:
            version = self._registry.publish(
                candidate, rows, window=window, note=note, recalibrated=recalibrated
            )
        self.seen = max(self.seen, version.number)
        refused = version.refused or self._overtaken(version)
        if refused is None:
            self._loaded = ServedModel(version.number, candidate, window)
        return Publication(version.number, refused, recalibrated)

    def _found(self, note: str) -> Version | None:
        """Return what an earlier run published under a note; it may have to become current yet."""
        registry, numbers = self._registry, self._registry.numbers()
        # A registry that was made afresh counts from 1 again.
        first = self.seen if numbers and numbers[-1] >= self.seen else 0
        for number in reversed(numbers):
            if number < first:
                break
            version = registry.version(number)
            if version.note == note:
                self._complete(version)
                return version
        return None

    def _complete(self, version: Version) -> None:
        """Move the pointer to a version, if its publisher was killed just before it did."""
        with self._registry.alone():
            is_next = self._registry.current() == version.parent
            if version.refused is None and is_next and not self._was_current(version):
                self._registry.point(version.number, "publish")

    def _overtaken(self, version: Version) -> str | None:
        """Return why a version that passed is not current, if another one was faster."""
        if self._was_current(version):
            return None
        return f"version {self._registry.current()} became current before this one could"

    def _was_current(self, version: Version) -> bool:
        return any(move.version == version.number for move in self._registry.history())


def interval_event(
    training: StreamTraining, exposures: Exposures, seen: Seen | None
) -> IntervalCompleted:
    """Return what is told of a complete interval, which the model of a training has seen."""
    start, end, rows = exposures.start, exposures.end, exposures.rows
    if seen is None:
        return IntervalCompleted(start=start, end=end, rows=rows.height)
    drift, psi = seen.drift, training.stability(rows)
    moves = {
        column.column: ScoreMove(
            column.offset, column.scale, column.verdict, psi.get(column.column)
        )
        for column in drift.columns
    }
    return IntervalCompleted(
        start=start,
        end=end,
        rows=rows.height,
        moves=moves,
        replaced=list(drift.replaced),
        evidence=list(drift.evidence),
    )


def recalibrated_version(
    publisher: Publisher,
    exposures: Exposures,
    training: StreamTraining,
    seen: Seen | None,
    tried: TriedRecalibration | None,
) -> tuple[Publication | None, TriedRecalibration | None]:
    """Recalibrate what is served, if its scores moved as if upstream models were replaced.

    It is the current version and not the learner's model: that one may have been refused, and rows
    without labels could not tell why. What the guardrails refused once is not tried again until
    another version is current, or other scores are concerned.

    Args:
        publisher: Knows the current version.
        exposures: Of the interval.
        training: The stream's own, before these exposures.
        seen: What its model said about them.
        tried: What was tried before.

    Returns:
        What came of it, if it had to be, and what not to try again.
    """
    note = publisher.note(exposures.end, recalibrated=True)
    found = publisher.before(note)
    if found is None:
        return None, tried
    with suppress(DataError):  # A version with other columns: the guardrails will say so.
        schema = found.model.schema
        if seen is None or found.model is not training.adjusted:
            time = training.schema.time or "time"
            seen = agreed(seen_by(found.model, exposures.rows, exposures.start, time), seen)
        now = TriedRecalibration(found.number, list(seen.drift.replaced))
        if seen.replacement is not None and now != tried:
            rows = read_log(seen.replacement.rows, schema, labels=False)
            model = found.model.recalibrated(rows)
            return publisher.publish(model, rows, note, found.window, recalibrated=True), now
    return None, tried


def offered(publisher: Publisher, training: StreamTraining) -> Publication | None:
    """Publish what a training has learned; None if it cannot be judged yet."""
    candidate = training.candidate()
    if candidate is None or training.until is None:
        return None
    window = f"{training.since:%Y-%m-%dT%H:%M}/{training.until:%Y-%m-%dT%H:%M}"
    return publisher.publish(*candidate, publisher.note(training.until), window)


def batch_event(
    before: StreamTraining, after: StreamTraining, batch: Batch, **rest: Any
) -> BatchLearned:
    """Return what is told of a batch; `rest` is what the training does not know."""
    schema, own = after.schema, None
    if before.learner.model is not None:
        own = Prequential(1, after.quality.batches[-1:])
    return BatchLearned(
        start=batch.start,
        end=batch.end,
        rows=batch.rows.height,
        learned=after.learned_rows - before.learned_rows,
        learned_rows=after.learned_rows,
        guard_rows=after.guard.count,
        positives={name: int(batch.rows[name].sum()) for name in schema.names},
        window=after.quality.quality(schema),
        batch=None if own is None else own.quality(schema),
        held=after.held(),
        learner=after.learner.facts(),
        **rest,
    )
