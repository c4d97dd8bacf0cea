"""Retry: what fails now and may go well later is tried again, with longer and longer pauses."""

__all__ = ["Retry", "StopAskedError", "Told"]

import threading
import time
from collections.abc import Callable, Generator
from typing import TypeVar

from harmonrank.streaming.config import LoopConfig
from harmonrank.streaming.loop_events import LoopEvent, RetryPlanned
from harmonrank.support.errors import HarmonRankError, ModelFileError

T = TypeVar("T")

Told = Generator[LoopEvent, None, T]
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
            yield RetryPlanned(what=what, reason=reason, seconds=pause)
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
