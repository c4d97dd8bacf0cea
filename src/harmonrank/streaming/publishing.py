"""Publishing: a stream's candidates become versions of a registry, each exactly once."""

__all__ = ["Publisher", "ServedModel", "open_registry"]

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harmonrank.data import Log
from harmonrank.fusion import Method
from harmonrank.fusion.points import with_points_of
from harmonrank.registry import Registry, Version
from harmonrank.registry.registry import SETTINGS
from harmonrank.streaming.loop_events import Publication


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
