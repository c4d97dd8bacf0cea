"""Checkpoint: the whole state of a stream, committed as a numbered folder by one rename.

A commit holds the position in the source and everything that came of the events before it, so that
both are on the disk together or not at all. Whatever a killed process was writing has no number:
the next start removes it, and goes on from the newest commit.
"""

__all__ = ["COMMITS", "Commits", "StatePart", "newest_commit"]

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from harmonrank.support.errors import DataError, OutputError
from harmonrank.support.storage.files import flush, read_json, sha256, write_json
from harmonrank.support.storage.staging import remove, replace, staged

COMMITS = "commits"
"""The folder of a state in which its commits are."""
_SUMS = "checksums.json"


@dataclass(frozen=True)
class StatePart:
    """A file or a folder of a commit; of files, checksums are kept.

    Attributes:
        value: What it holds. A part whose value is the very object of the commit before is not
            written again: its files get a second name. None is always written.
        write: Writes it to a path that is not there yet.
    """

    value: Any
    write: Callable[[Path], None] = field(repr=False)


def newest_commit(state: Path) -> int:
    """Return the number of the newest commit of a state; 0 before the first."""
    folder = state / COMMITS
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdigit()), default=0)


class Commits:
    """The commits of a state, of which the newest counts.

    Args:
        state: The folder of the state.
    """

    def __init__(self, state: Path) -> None:
        self._folder = state / COMMITS
        self._folder.mkdir(parents=True, exist_ok=True)
        self._values: dict[str, Any] = {}
        self._sums: dict[str, str] = {}
        self.number = newest_commit(state)

    @property
    def folder(self) -> Path | None:
        """The newest commit; None before the first."""
        return self._folder / str(self.number) if self.number else None

    def sweep(self) -> int:
        """Remove all but the newest commit, and what killed processes left; return how many."""
        left = [path for path in self._folder.iterdir() if path.name != str(self.number)]
        for path in left:
            remove(path)
        return len(left)

    def check(self) -> None:
        """Refuse a commit whose files are not those that were written."""
        assert self.folder is not None, "there is no commit yet"
        self._sums = read_json(self.folder / _SUMS, dict[str, str])
        for name, expected in self._sums.items():
            path = self.folder / name
            if not path.is_file() or sha256(path) != expected:
                raise DataError(
                    f"'{path}' does not match its checksum: the state is damaged. Begin a new one "
                    "from the events with `harmonrank backfill`."
                )

    def loaded(self, values: Mapping[str, Any]) -> None:
        """Say which values the parts of the newest commit were read to."""
        self._values = dict(values)

    def commit(self, parts: Mapping[str, StatePart]) -> int:
        """Write the next commit; return its number.

        Nothing has changed if it fails, so it may be tried again.

        Raises:
            OutputError: The disk is full, or gone.
        """
        target, before = self._folder / str(self.number + 1), self.folder
        sums: dict[str, str] = {}
        try:
            with staged(target) as hidden:
                made = hidden / target.name
                made.mkdir()
                for name, part in parts.items():
                    path = made / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    if before is not None and self._is_kept(name, part):
                        _link(before / name, path)
                        known = self._sums.get(name)
                    else:
                        part.write(path)
                        known = sha256(path) if path.is_file() else None
                    sums |= {} if known is None else {name: known}
                write_json(made / _SUMS, sums)
                flush(made)
                replace(made, target)
        except OutputError:
            raise
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise OutputError(f"'{self._folder}' cannot be written: {reason}.") from error
        self.number += 1
        self._sums = sums
        self._values = {name: part.value for name, part in parts.items()}
        if before is not None:
            remove(before)
        return self.number

    def _is_kept(self, name: str, part: StatePart) -> bool:
        return part.value is not None and self._values.get(name) is part.value


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
