"""Live: the version that a process serves, and how it moves to another one."""

__all__ = ["Live", "load_target", "registry_of", "runtime_of"]

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harmonrank.fusion import Method, load
from harmonrank.fusion.saved import checksums
from harmonrank.registry import Registry
from harmonrank.registry.registry import CURRENT, SETTINGS
from harmonrank.serving.rank import warm_up
from harmonrank.serving.runtime import Runtime
from harmonrank.serving.settings import ServeConfig
from harmonrank.support.errors import HarmonRankError

_SHORT = 12


def registry_of(target: str) -> Registry | None:
    """Return the registry that a target is; None if it is a saved model."""
    return Registry(target) if (Path(target) / SETTINGS).is_file() else None


def load_target(target: str) -> tuple[Method, str]:
    """Return the model that a target stands for now, and the name of its version."""
    registry = registry_of(target)
    if registry is not None:
        number = registry.version().number
        return registry.load(number), str(number)
    model = load(target)
    return model, checksums(target)["weights.safetensors"][:_SHORT]


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

    def __init__(
        self, config: ServeConfig, on_event: Callable[[str, Mapping[str, Any]], None]
    ) -> None:
        self._config, self._on_event = config, on_event
        model, version = load_target(config.target)
        self.runtime = self._ready(model, version)
        self._registry = registry_of(config.target)
        self._seen: tuple[int, ...] | None = None

    def _ready(self, model: Method, version: str) -> Runtime:
        runtime = runtime_of(self._config, model, version)
        warm_up(runtime)
        return runtime

    def refresh(self) -> None:
        """Move to the current version, if that is another one; a broken one is refused.

        The new version is loaded, tested on its golden rows and warmed up beside the old one, and
        takes its place by one assignment.
        """
        if self._registry is None:
            return
        stamp = _stamp(self._registry.path / CURRENT)
        if stamp == self._seen:
            return
        self._seen = stamp
        number: int | None = None
        try:
            number = self._registry.current()
            if number is None or str(number) == self.runtime.version:
                return
            before, self.runtime = (
                self.runtime.version,
                self._ready(self._registry.load(number), str(number)),
            )
        except Exception as error:  # Whatever it is, the old version goes on.
            ours = isinstance(error, HarmonRankError | OSError)
            reason = str(error) if ours else f"{type(error).__name__}: {error}"
            self._on_event("reload refused", {"version": number, "reason": reason})
        else:
            self._on_event("reloaded", {"version": number, "before": before})


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
