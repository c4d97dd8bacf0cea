"""Segments: rows that only grow, in files of which each is written once and linked from then on.

A commit of a stream must be cheap: what has not changed since the last one is not written again
but linked to its file. Eight segments of one size are merged into one, so that a row is written
once for each power of eight of the commits that it lives through, which is a few times.
"""

__all__ = ["SavedSegment", "Segments", "linked"]

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import polars as pl
from msgspec import Meta, Struct

from harmonrank.data.reading.parquet import writing
from harmonrank.data.reading.table_files import reading
from harmonrank.support.errors import DataError
from harmonrank.support.storage.files import sha256

_TOGETHER = 8


class SavedSegment(Struct, forbid_unknown_fields=True):
    """A file of rows, as a commit names it."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]{0,99}$")]
    rows: Annotated[int, Meta(ge=1)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    level: Annotated[int, Meta(ge=0, le=30)] = 0

    def read(self, folder: Path) -> pl.DataFrame:
        """Return the rows.

        Raises:
            DataError: The file is missing, or not what was written.
        """
        path = folder / self.name
        with reading(path, "parquet"):
            if sha256(path) != self.sha256:
                raise DataError(f"'{path}' is damaged: its checksum differs; restore it.")
            frame = pl.read_parquet(path, glob=False)
        if frame.height != self.rows:
            raise DataError(f"'{path}' has {frame.height:,} rows; expected {self.rows:,}.")
        return frame


@dataclass
class _Segment:
    frame: pl.DataFrame
    level: int = 0
    saved: SavedSegment | None = None


class Segments:
    """Rows in order, to which more are added."""

    def __init__(self) -> None:
        self._parts: list[_Segment] = []

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(part.frame.height for part in self._parts)

    def add(self, frame: pl.DataFrame) -> None:
        """Add rows at the end."""
        self._parts.append(_Segment(frame))

    def frame(self) -> pl.DataFrame:
        """Return all rows."""
        return _joined(self._parts, rechunk=False)

    def save(
        self, folder: Path, before: Path | None, new_name: Callable[[], str]
    ) -> list[SavedSegment]:
        """Write what is new into a folder, link the rest, and return what to load.

        Args:
            folder: Where.
            before: The folder of the last time.
            new_name: Makes a name that no other segment has.
        """
        kept = [part for part in self._parts if part.saved is not None]
        if len(kept) < len(self._parts):
            kept.append(_Segment(_joined(self._parts[len(kept) :])))
        self._parts = _merged(kept)
        for part in self._parts:
            name = new_name() if part.saved is None else part.saved.name
            if part.saved is None or not linked(name, folder, before):
                with writing():
                    part.frame.write_parquet(folder / name, compression="lz4", statistics=False)
                checksum = sha256(folder / name)
                part.saved = SavedSegment(name, part.frame.height, checksum, part.level)
        return [part.saved for part in self._parts if part.saved is not None]

    @classmethod
    def load(cls, folder: Path, saved: list[SavedSegment]) -> Self:
        """Return the rows that were saved."""
        found = cls()
        found._parts = [_Segment(segment.read(folder), segment.level, segment) for segment in saved]
        return found


def _merged(parts: list[_Segment]) -> list[_Segment]:
    """Return the parts with the last ones made one, as long as enough are of one level."""
    parts = list(parts)
    while len(parts) >= _TOGETHER and parts[-_TOGETHER].level == parts[-1].level:
        last = parts[-_TOGETHER:]
        parts[-_TOGETHER:] = [_Segment(_joined(last), last[0].level + 1)]
    return parts


def _joined(parts: list[_Segment], *, rechunk: bool = True) -> pl.DataFrame:
    # A context column is without a type as long as none of its values has been seen.
    return pl.concat([part.frame for part in parts], how="vertical_relaxed", rechunk=rechunk)


def linked(name: str, folder: Path, before: Path | None) -> bool:
    """Give a file of an earlier commit a name in this one, too; tell whether it was there."""
    if before is None or not (before / name).is_file():
        return False
    try:
        os.link(before / name, folder / name)
    except OSError:  # a file system without links
        shutil.copyfile(before / name, folder / name)
    return True
