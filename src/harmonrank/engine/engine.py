"""Engine: function calls that may run elsewhere, and states that stay on their worker.

A call depends on its arguments alone. So an engine may repeat a call that was lost with its worker,
and the result does not depend on the number of workers.
"""

__all__ = ["Engine", "LocalEngine", "Resident", "current_engine", "in_order", "using"]

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class Resident(Protocol):
    """A state that was built on a worker and stays there; built again if the worker is lost."""

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return a promise of `function(state, *given)`."""


class Engine(Protocol):
    """Where work runs.

    `call` returns a promise. Given to another call, its value is passed on without passing through
    this process.

    Attributes:
        name: local or ray.
        workers: How many calls run at once.
    """

    name: str
    workers: int

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return a promise of `function(*given)`; the function is one that can be imported."""

    def put(self, value: Any) -> Any:
        """Return a promise of a value that many calls are given."""

    def get(self, promise: Any) -> Any:
        """Wait for a promise and return its value; an error of the call is raised here."""

    def keep(self, build: Callable[..., Any], *given: Any) -> Resident:
        """Build a state on some worker; residents are spread evenly."""


def in_order(
    engine: Engine, function: Callable[..., Any], items: Iterable[Any], *shared: Any
) -> Iterator[Any]:
    """Yield `function(item, *shared)` of every item, in their order.

    At most a few calls per worker are pending at a time, so that results do not accumulate.

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


class LocalEngine:
    """One worker, this process: the reference for other engines."""

    name = "local"
    workers = 1

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return `function(*given)`."""
        return function(*given)

    def put(self, value: Any) -> Any:
        """Return the value."""
        return value

    def get(self, promise: Any) -> Any:
        """Return the value; here a promise is the value."""
        return promise

    def keep(self, build: Callable[..., Any], *given: Any) -> "_Here":
        """Build a state in this process."""
        return _Here(build(*given))


class _Here:
    """A state in this process."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return `function(state, *given)`."""
        return function(self._state, *given)


_engine: ContextVar[Engine | None] = ContextVar("harmonrank_engine", default=None)


def current_engine() -> Engine:
    """Return the engine that `using` names; this process where nobody has named one."""
    return _engine.get() or LocalEngine()


@contextmanager
def using(engine: Engine | None) -> Iterator[Engine]:
    """Let fits and searches within work on an engine; None leaves it as it is.

    >>> with using(LocalEngine()) as engine:
    ...     current_engine() is engine
    True
    """
    token = _engine.set(engine or _engine.get())
    try:
        yield current_engine()
    finally:
        _engine.reset(token)
