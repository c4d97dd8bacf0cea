"""Live: the version that a process serves, and how it moves to another one."""

__all__ = ["Live", "runtime_of"]

import time
from pathlib import Path

from harmonrank.fusion import Method
from harmonrank.registry.registry import CURRENT
from harmonrank.registry.target import load_target, registry_of
from harmonrank.serving.rank import warm_up
from harmonrank.serving.runtime import Runtime
from harmonrank.serving.settings import OnEvent, ServeConfig
from harmonrank.support.errors import HarmonRankError

# Seconds until a version that was refused is tried again: workers agree within five.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 4.0


def runtime_of(config: ServeConfig, model: Method, version: str) -> Runtime:
    """Return a model at the operating point of the service; refuse one that lacks the point."""
    served = model if config.at is None else model.at(config.at)
    return Runtime(served, version, config.points)


class Live:
    """Holds the runtime of the current version; a request takes it once and keeps it.

    Args:
        config: Of the service.
        on_event: Called with the name of an event and its facts.
    """

    def __init__(self, config: ServeConfig, on_event: OnEvent) -> None:
        self._config, self._on_event = config, on_event
        model, version = load_target(config.target)
        self.runtime = self._ready(model, version)
        self._registry = registry_of(config.target)
        self._tried: tuple[int, ...] | None = None
        self._refused: str | None = None
        self._pause = _FIRST_PAUSE
        self._due: float | None = None

    def _ready(self, model: Method, version: str) -> Runtime:
        runtime = runtime_of(self._config, model, version)
        warm_up(runtime)
        return runtime

    def refresh(self) -> None:
        """Move to the current version, if that is another one; a broken one is refused.

        The new version is loaded, tested on its golden rows and warmed up beside the old one, and
        takes its place by one assignment. One that is refused is tried again after a pause, as the
        fault may pass, so that no worker stays behind the others; the same refusal is told once.
        """
        if self._registry is None:
            return
        stamp, before = _stamp(self._registry.path / CURRENT), self.runtime.version
        if stamp != self._tried:
            self._tried, self._refused, self._pause = stamp, None, _FIRST_PAUSE
        elif self._due is None or time.monotonic() < self._due:
            return
        number: int | None = None
        try:
            number = self._registry.current()
            if number is not None and str(number) != before:
                self.runtime = self._ready(self._registry.load(number), str(number))
        except Exception as error:  # Whatever it is, the old version goes on.
            ours = isinstance(error, HarmonRankError | OSError)
            reason = str(error) if ours else f"{type(error).__name__}: {error}"
            if reason != self._refused:
                self._on_event("reload refused", {"version": number, "reason": reason})
            self._refused, self._due = reason, time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            return
        self._due = None
        if self.runtime.version != before:
            self._on_event("reloaded", {"version": number, "before": before})


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size
