"""Study cell: one experiment, from its data to a few numbers; a finished one is never run again."""

__all__ = ["StudyCell", "require"]

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, TypedDict

from harmonrank.support.errors import DataError
from harmonrank.support.events import OnEvent
from harmonrank.support.storage import decode, digest


class _Failed(TypedDict):
    """The result of a cell that the data or settings do not allow."""

    error: str


class StudyCell(ABC):
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

    @abstractmethod
    def check(self, content: Any) -> dict[str, Any]:
        """Return what `run` returned, after a way through JSON; refuse anything else."""

    def decoded(self, content: Any) -> dict[str, Any]:
        """Return a stored result, which may be the error that the cell ended with."""
        if isinstance(content, dict) and "error" in content:
            return dict(decode(content, _Failed, self.name))
        return self.check(content)

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


def require(condition: bool, what: str) -> None:
    """Refuse a stored result whose parts do not fit the cell."""
    if not condition:
        raise DataError(f"A stored result must have {what}.")
