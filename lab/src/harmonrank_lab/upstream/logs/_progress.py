"""ImportProgress: what an import that was cut short has finished, read back as types."""

__all__ = ["ChunkRecord", "ImportProgress", "Survey", "TablesRecord"]

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar

from msgspec import Meta

from harmonrank.support.errors import DataError
from harmonrank.support.storage import read_json, write_json
from harmonrank_lab.upstream.logs._manifest import FileAbout, Name, Rows

T = TypeVar("T")

_KEPT = "progress"

Key = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Survey(TypedDict):
    """Where the parts begin, and the rows of every chunk."""

    cuts: Annotated[list[Key], Meta(min_length=3, max_length=3)]
    sizes: list[Rows]


class PartAbout(FileAbout):
    """A part file and the positives of each objective in it."""

    positives: dict[str, Rows]


class ChunkRecord(TypedDict):
    """The part files that a chunk became."""

    source: str
    files: dict[Name, PartAbout]
    odd: dict[str, Rows]
    rows: Rows


class TablesRecord(TypedDict):
    """The tables of features."""

    files: dict[Name, FileAbout]
    odd: dict[str, Rows]


@dataclass(frozen=True)
class ImportProgress:
    """The records of one import; one that cannot be read is as good as absent."""

    folder: Path

    def find(self, name: str, kind: type[T]) -> T | None:
        """Return a record, or None if its work has to be done."""
        path = self.folder / _KEPT / f"{name}.json"
        try:
            return read_json(path, kind) if path.is_file() else None
        except DataError:
            return None

    def put(self, name: str, value: Any) -> None:
        """Keep a record. A rename is whole or not at all: it never tells of more than is there."""
        path = self.folder / _KEPT / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        partial = path.with_suffix(".partial")
        write_json(partial, value)
        partial.replace(path)

    def whole(self, record: ChunkRecord | TablesRecord) -> bool:
        """Whether the files of a record are there with the sizes it tells."""
        files = [(self.folder / name, told) for name, told in record["files"].items()]
        return all(f.is_file() and f.stat().st_size == told["bytes"] for f, told in files)

    def forget(self) -> None:
        """Remove what only a continued run needs."""
        for file in (self.folder / _KEPT).iterdir():
            file.unlink()
        (self.folder / _KEPT).rmdir()
