"""Publishing: a stream's candidates become versions of a registry, each exactly once."""

__all__ = ["Publisher", "open_registry"]

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from harmonrank.data import Log, read_log
from harmonrank.fusion import Method
from harmonrank.fusion.method import with_points_of
from harmonrank.registry import Registry, Version
from harmonrank.registry.registry import SETTINGS
from harmonrank.streaming.join.intervals import Exposures
from harmonrank.streaming.learners.training import Seen, StreamTraining, agreed, seen_by
from harmonrank.streaming.loop_events import Publication
from harmonrank.streaming.state.state import TriedRecalibration
from harmonrank.support.errors import DataError


def open_registry(path: Path) -> Registry:
    """Return the registry of a folder; one with default guardrails is made if none is there.

    What a killed run was writing there is removed.
    """
    registry = Registry(path) if (path / SETTINGS).is_file() else Registry.create(path)
    registry.sweep()
    return registry


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
        self._loaded: tuple[Version, Method] | None = None

    def offered(self, training: StreamTraining) -> Publication | None:
        """Publish what a training has learned; None if it cannot be judged yet."""
        candidate = training.candidate()
        if candidate is None or training.until is None:
            return None
        window = f"{training.since:%Y-%m-%dT%H:%M}/{training.until:%Y-%m-%dT%H:%M}"
        return self.publish(*candidate, self.note(training.until), window)

    def recalibrated(
        self,
        exposures: Exposures,
        training: StreamTraining,
        seen: Seen | None,
        tried: TriedRecalibration | None,
    ) -> tuple[Publication | None, TriedRecalibration | None]:
        """Recalibrate what is served, if its scores moved as if upstream models were replaced.

        It is the current version and not the learner's model: that one may have been refused, and
        rows without labels could not tell why. What the guardrails refused once is not tried again
        until another version is current, or other scores are concerned.

        Args:
            exposures: Of the interval.
            training: The stream's own, before these exposures.
            seen: What its model said about them.
            tried: What was tried before.

        Returns:
            What came of it, if it had to be, and what not to try again.
        """
        note = self.note(exposures.end, recalibrated=True)
        served = self.before(note)
        if served is None:
            return None, tried
        version, model = served
        with suppress(DataError):  # A version with other columns: the guardrails will say so.
            if seen is None or model is not training.adjusted:
                time = training.schema.time or "time"
                seen = agreed(seen_by(model, exposures.rows, exposures.start, time), seen)
            now = TriedRecalibration(version.number, list(seen.drift.replaced))
            if seen.replacement is not None and now != tried:
                rows = read_log(seen.replacement.rows, model.schema, labels=False)
                newer = model.recalibrated(rows, scores=seen.drift.replaced)
                return self.publish(newer, rows, note, version.window, recalibrated=True), now
        return None, tried

    def note(self, end: datetime, *, recalibrated: bool = False) -> str:
        """Return the note of the candidate that comes of an interval."""
        kind = "recalibrated at" if recalibrated else "learned to"
        return f"stream {self._stream}, {kind} {end:%Y-%m-%dT%H:%M:%S}"

    def before(self, note: str) -> tuple[Version, Method] | None:
        """Return what was current before the candidate of a note; None before the first version.

        It is current still, unless an earlier run has published that candidate.
        """
        made = self._published(note)
        number = self._registry.current() if made is None else made.parent
        if number is None:
            return None
        if self._loaded is None or self._loaded[0].number != number:
            self._loaded = self._registry.version(number), self._registry.load(number)
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
        version, served = self._published(note), self.before(note)
        if served is not None:
            # Who serves an operating point by its name goes on with the new version.
            candidate = with_points_of(candidate, served[1])
        if version is None:
            version = self._registry.publish(
                candidate, rows, window=window, note=note, recalibrated=recalibrated
            )
        self.seen = max(self.seen, version.number)
        refused = version.refused
        if refused is None and not self._was_current(version):
            current = self._registry.current()
            refused = f"version {current} became current before this one could"
        if refused is None:
            self._loaded = version, candidate
        return Publication(version.number, refused, recalibrated)

    def _published(self, note: str) -> Version | None:
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

    def _was_current(self, version: Version) -> bool:
        return any(move.version == version.number for move in self._registry.history())
