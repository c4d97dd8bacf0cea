"""SpillingEngine: this process as an engine, which keeps rows in files and not in memory.

What `parts` returns, dataclasses of arrays with a row for each row, is written to a file that
nobody else can name. What `call` returns is made when it is asked for, and again whenever it is
asked for again: a value that is handed on takes no memory meanwhile.
"""

__all__ = ["SpillingEngine"]

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from harmonrank.data.rows.blocks import SpilledBlocks
from harmonrank.engine import LocalEngine


@dataclass(frozen=True)
class _Later:
    """A call that is made when its value is needed."""

    function: Callable[..., Any]
    given: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Written:
    """Some rows of what is in a file; the file is gone with the last of these."""

    file: SpilledBlocks[Any]
    number: int
    first: int
    end: int


class SpillingEngine(LocalEngine):
    """One worker, this process, for tables larger than memory.

    Args:
        folder: Where files are; that of temporary files if left out.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        # One file for all calls of a function, as they are done with together.
        self._files: WeakValueDictionary[str, SpilledBlocks[Any]] = WeakValueDictionary()

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return a promise of `function(*given)`, which is called when its value is needed."""
        return _Later(function, given)

    def parts(self, count: int, function: Callable[..., Any], *given: Any) -> list[Any]:
        """Call the function now, and write its values to a file."""
        values = super().parts(count, function, *map(self.get, given))
        file = self._files.get(function.__name__) or SpilledBlocks[Any]([], self._folder)
        self._files[function.__name__] = file
        number = file.add(_joined(values))
        ends = np.cumsum([0, *map(_rows, values)]).tolist()
        return [_Written(file, number, *ends[k : k + 2]) for k in range(count)]

    def get(self, promise: Any) -> Any:
        """Return the value of a promise; whatever else is its own value."""
        if isinstance(promise, _Later):
            return promise.function(*map(self.get, promise.given))
        if isinstance(promise, _Written):
            return promise.file.part(promise.number, slice(promise.first, promise.end))
        return promise


def _joined(values: list[Any]) -> Any:
    """Return the rows of all values."""
    kind = type(values[0])
    columns = {f.name: [getattr(value, f.name) for value in values] for f in fields(values[0])}
    return kind(**{k: None if v[0] is None else np.concatenate(v) for k, v in columns.items()})


def _rows(value: Any) -> int:
    return len(getattr(value, fields(value)[0].name))
