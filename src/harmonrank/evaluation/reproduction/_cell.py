"""Cell: one experiment, from its data to a few numbers; a finished one is never run again."""

__all__ = ["Cell"]

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from harmonrank.data.digests import digest
from harmonrank.events import OnEvent


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
        slug = "".join(c if c.isalnum() or c in "-._" else "-" for c in self.name)
        return f"{slug[:100]}-{self.digest[:10]}"

    @property
    def digest(self) -> str:
        """A checksum of all that decides the result."""
        return digest(self.identity())

    @property
    def place(self) -> tuple[Any, ...]:
        """Cells in this order share their rows with the one before, where they can."""
        return (self.name,)
