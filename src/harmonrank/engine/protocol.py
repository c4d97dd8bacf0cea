"""Engine: calls of functions that may run elsewhere, and states that stay where they were built.

A call is a function of its arguments alone, so that an engine may repeat one that was lost with
its worker, and the result is the same however many workers there are.
"""

__all__ = ["Engine", "Resident", "in_order"]

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol


class Resident(Protocol):
    """A state that was built on a worker and stays there; built again if the worker is lost."""

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return a promise of `function(state, *given)`."""
        ...


class Engine(Protocol):
    """Where work runs.

    A promise is what `call` returns: given to another call, its value is handed over without
    passing through this process.

    Attributes:
        name: local or ray.
        workers: How many calls run at once.
    """

    name: str
    workers: int

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return a promise of `function(*given)`; the function is one that can be imported."""
        ...

    def parts(self, count: int, function: Callable[..., Any], *given: Any) -> list[Any]:
        """Return promises of the `count` values that `function(*given)` returns."""
        ...

    def put(self, value: Any) -> Any:
        """Return a promise of a value that many calls are given."""
        ...

    def get(self, promise: Any) -> Any:
        """Wait for a promise and return its value; an error of the call is raised here."""
        ...

    def keep(self, build: Callable[..., Any], *given: Any) -> Resident:
        """Build a state on some worker; residents are spread evenly."""
        ...


def in_order(
    engine: Engine, function: Callable[..., Any], items: Iterable[Any], *shared: Any
) -> Iterator[Any]:
    """Yield `function(item, *shared)` of every item, in their order.

    At most a few calls per worker wait at a time, so that results do not pile up.

    >>> from harmonrank.engine import LocalEngine
    >>> list(in_order(LocalEngine(), pow, [2, 3], 2))
    [4, 9]
    """
    waiting: deque[Any] = deque()
    given = [engine.put(value) for value in shared]
    for item in items:
        waiting.append(engine.call(function, item, *given))
        if len(waiting) > 2 * engine.workers:
            yield engine.get(waiting.popleft())
    while waiting:
        yield engine.get(waiting.popleft())
