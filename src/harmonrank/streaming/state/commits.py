"""Commits: the whole state of a stream, committed as a numbered folder by one rename.

A commit holds the position in the source and everything that came of the events before it, so that
both are on the disk together or not at all. Whatever a killed process was writing has no number:
the next start removes it, and goes on from the newest commit.
"""

__all__ = ["COMMITS", "Commits", "read_frame"]

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl

from harmonrank.data import Log
from harmonrank.data.reading.parquet import writing
from harmonrank.data.reading.table_files import reading
from harmonrank.data.rows.kept_rows import write_rows
from harmonrank.fusion import Method
from harmonrank.support.errors import DataError, OutputError
from harmonrank.support.storage.arrays import write_arrays
from harmonrank.support.storage.files import flush, numbered, read_json, write_json
from harmonrank.support.storage.staging import remove, replace, staged
from harmonrank.support.storage.store import file_sums

COMMITS = "commits"
"""The folder of a state in which its commits are."""
_SUMS = "checksums.json"

T = TypeVar("T")


class Commits:
    """The commits of a state, of which the newest counts.

    A commit is made of parts: values by the names of their files or folders. One that is the very
    object of the commit before is not written again: its files get a second name.

    Args:
        state: The folder of the state.
    """

    def __init__(self, state: Path) -> None:
        self.state, self._folder = state, state / COMMITS
        self._parts: dict[str, Any] = {}
        self._sums: dict[str, str] = {}
        self.number = max(numbered(self._folder), default=0)

    @property
    def folder(self) -> Path | None:
        """The newest commit; None before the first."""
        return self._folder / str(self.number) if self.number else None

    def sweep(self) -> int:
        """Remove all but the newest commit, and what killed processes left; return how many."""
        there = self._folder.iterdir() if self._folder.is_dir() else []
        left = [path for path in there if path.name != str(self.number)]
        for path in left:
            remove(path)
        return len(left)

    def check(self) -> None:
        """Refuse a commit whose files are not those that were written."""
        if self.folder is None:
            return
        self._sums = read_json(self.folder / _SUMS, dict[str, str])
        there = [path.name for path in self.folder.iterdir() if path.name != _SUMS]
        sums = file_sums(self.folder, there)
        for name in sorted(sums.keys() | self._sums.keys()):
            if sums.get(name) != self._sums.get(name):
                raise _damaged(self.folder / name, "does not match its checksum")

    def read(self, name: str, reader: Callable[[Path], T]) -> T:
        """Return a part of the newest commit, or refuse one that is not there."""
        part = self.find(name, reader)
        if part is None:
            raise _damaged(self._folder / str(self.number) / name, "is missing")
        return part

    def find(self, name: str, reader: Callable[[Path], T]) -> T | None:
        """Return a part of the newest commit, if it is there."""
        if self.folder is None or not (self.folder / name).exists():
            return None
        part = self._parts[name] = reader(self.folder / name)
        return part

    def commit(self, parts: Mapping[str, Any]) -> int:
        """Write the next commit; return its number.

        Nothing has changed if it fails, so it may be tried again.

        Args:
            parts: By name: a frame, a log, a model, a struct, arrays by name, or None for nothing.

        Raises:
            OutputError: The disk is full, or gone.
        """
        target, before = self._folder / str(self.number + 1), self.folder
        parts = {name: part for name, part in parts.items() if part is not None}
        sums: dict[str, str] = {}
        try:
            with staged(target) as hidden:
                made = hidden / target.name
                made.mkdir()
                for name, part in parts.items():
                    if before is not None and self._parts.get(name) is part:
                        _link(before / name, made / name)
                        sums |= {n: s for n, s in self._sums.items() if n.split("/")[0] == name}
                    else:
                        write = next(w for kind, w in _WRITERS if isinstance(part, kind))
                        write(part, made / name)
                        sums |= file_sums(made, [name])
                write_json(made / _SUMS, sums)
                flush(made)
                replace(made, target)
        except OutputError:
            raise
        except OSError as error:
            reason = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise OutputError(f"'{self._folder}' cannot be written: {reason}.") from error
        self.number += 1
        self._sums, self._parts = sums, parts
        if before is not None:
            remove(before)
        return self.number


def read_frame(path: Path) -> pl.DataFrame:
    """Read a frame of a commit."""
    with reading(path, "parquet"):
        return pl.read_parquet(path, glob=False)


def _write_frame(part: pl.DataFrame, path: Path) -> None:
    with writing():
        part.write_parquet(path, compression="lz4", statistics=False)


_WRITERS: tuple[tuple[type, Callable[[Any, Path], None]], ...] = (
    (pl.DataFrame, _write_frame),
    (Log, lambda part, path: write_rows(path, part)),
    (Method, lambda part, path: part.save(path)),
    (msgspec.Struct, lambda part, path: write_json(path, msgspec.to_builtins(part))),
    (dict, lambda part, path: write_arrays(path, part)),
)


def _damaged(path: Path, what: str) -> DataError:
    return DataError(
        f"'{path}' {what}: the state is damaged. Begin a new one from the events with "
        "`harmonrank stream --backfill`."
    )


def _link(there: Path, path: Path) -> None:
    """Give files a second name; where a file system has none, copy them."""
    if there.is_dir():
        path.mkdir()
        for inner in there.iterdir():
            _link(inner, path / inner.name)
        return
    with suppress(OSError):
        os.link(there, path)
        return
    shutil.copyfile(there, path)
