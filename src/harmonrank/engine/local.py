"""LocalEngine: every call runs in this process when it is made."""

__all__ = ["LocalEngine"]

from collections.abc import Callable
from typing import Any


class LocalEngine:
    """One worker, this process: what results of other engines are compared with."""

    name = "local"
    workers = 1

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return `function(*given)`."""
        return function(*given)

    def parts(self, count: int, function: Callable[..., Any], *given: Any) -> list[Any]:
        """Return the values of `function(*given)`."""
        values = list(function(*given))
        assert len(values) == count, "a function returns as many parts as it was asked for"
        return values

    def put(self, value: Any) -> Any:
        """Return the value."""
        return value

    def get(self, promise: Any) -> Any:
        """Return the value, which a promise is here."""
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
