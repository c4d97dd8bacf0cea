"""Cell: one experiment, from its data to a few numbers; a finished one is never run again."""

__all__ = ["Cell", "OnEvent", "Store"]

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harmonrank.data.files import new_file, read_json, write_json
from harmonrank.errors import DataError

OnEvent = Callable[[Any], None]


class Cell(ABC):
    """One experiment with its own file of results."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name for people, unlike that of most other cells."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return all that decides the result, as JSON parts."""

    @abstractmethod
    def run(self, on_event: OnEvent, checkpoint: Path) -> dict[str, Any]:
        """Do the experiment; return numbers as JSON parts."""

    @property
    def key(self) -> str:
        """The name of its file: unlike that of any other cell."""
        text = json.dumps(self.identity(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        slug = "".join(c if c.isalnum() or c in "-._" else "-" for c in self.name)
        return f"{slug[:100]}-{digest}"

    @property
    def place(self) -> tuple[Any, ...]:
        """Cells in this order share their rows with the one before, where they can."""
        return (self.name,)


class Store:
    """A folder of finished cells, one small JSON file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, cell: Cell) -> Path:
        return self.folder / f"{cell.key}.json"

    def checkpoint(self, cell: Cell) -> Path:
        """Return where a running cell keeps its state."""
        return self.folder / f"{cell.key}.checkpoint"

    def find(self, cell: Cell) -> dict[str, Any] | None:
        """Return the result of a cell that was finished before; a file beyond reading is none."""
        path = self._path(cell)
        if not path.is_file():
            return None
        try:
            result: dict[str, Any] = read_json(path)["result"]
        except (DataError, KeyError, TypeError):
            return None
        return result

    def put(self, cell: Cell, result: dict[str, Any]) -> None:
        """Keep a result; it appears when complete."""
        parts = {"cell": cell.name, "identity": cell.identity(), "result": result}
        with new_file(self._path(cell), overwrite=True) as partial:
            write_json(partial, parts)
        self.checkpoint(cell).unlink(missing_ok=True)
