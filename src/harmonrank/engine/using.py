"""Which engine the code of this thread works with."""

__all__ = ["current_engine", "using"]

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harmonrank.engine.local import LocalEngine
from harmonrank.engine.protocol import Engine

_engine: ContextVar[Engine | None] = ContextVar("harmonrank_engine", default=None)


def current_engine() -> Engine:
    """Return the engine that `using` names; this process where nobody has named one."""
    return _engine.get() or LocalEngine()


@contextmanager
def using(engine: Engine) -> Iterator[Engine]:
    """Let fits and searches within work on an engine.

    >>> with using(LocalEngine()) as engine:
    ...     current_engine() is engine
    True
    """
    token = _engine.set(engine)
    try:
        yield engine
    finally:
        _engine.reset(token)
