"""Clock: how long a training took, and how far it came."""

__all__ = ["Clock"]

from time import perf_counter

from harmonrank.events import BatchEnded, EpochEnded, Resumed
from harmonrank.prediction.member import MemberFacts
from harmonrank.training import Event, Finished


class Clock:
    """Counts epochs, and the seconds that this process trained rather than validated."""

    def __init__(self) -> None:
        self.epochs = self.best = self._before = 0
        self.training = 0.0
        self.started = self._mark = perf_counter()

    def hear(self, event: Event) -> None:
        """Take note of an event of the training loop."""
        now = perf_counter()
        if isinstance(event, BatchEnded):
            self.training += now - self._mark
        elif isinstance(event, Resumed):
            self.epochs = self._before = event.epoch
        elif isinstance(event, EpochEnded):
            self.epochs = event.epoch + 1
        elif isinstance(event, Finished):
            self.best = event.best_epoch
        self._mark = now

    def facts(self, rows: int) -> MemberFacts:
        """Return the facts of a training whose epochs have so many rows."""
        speed = rows * (self.epochs - self._before) / max(self.training, 1e-9)
        return MemberFacts(self.epochs, self.best, perf_counter() - self.started, speed, (), ())
