"""Store: results of finished work in a folder, looked up by key, and checksums of contents."""

__all__ = ["Store", "digest", "file_sums"]

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from harmonrank.support.errors import DataError, OutputError
from harmonrank.support.storage.files import new_file, read_json, sha256, to_json, write_json
from harmonrank.support.storage.staging import swept

T = TypeVar("T")
_BEGINNING = to_json({"key": ""}).partition('""')[0].encode()


def digest(value: Any) -> str:
    """Return a checksum of JSON parts, whatever the order of their keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_sums(folder: Path, outputs: Iterable[str]) -> dict[str, str]:
    """Return the checksum of every file among the outputs, which may be folders."""
    sums: dict[str, str] = {}
    for output in outputs:
        path = folder / output
        files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
        sums |= {f.relative_to(folder).as_posix(): sha256(f) for f in files}
    return sums


class Store:
    """A folder of records, one small JSON file each.

    A record holds the key of the work, its result and a checksum. It appears under its name when it
    is complete. A record that cannot be read, was changed or has another key counts as absent, and
    its work is repeated.

    Args:
        folder: Made when the first record is put.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, name: str, suffix: str = ".json") -> Path:
        """Return the path of a record, or of its companion with another suffix."""
        return self.folder / f"{name}{suffix}"

    def find(self, name: str, key: str, decode: Callable[[Any], T | None]) -> T | None:
        """Return the result of the work with this key; None if it has to be done.

        Args:
            name: Of the record.
            key: A digest of everything that decides the result.
            decode: Builds the result from JSON parts; a record that it cannot decode is absent.
        """
        if not self.path(name).is_file():
            return None
        for suffix in ("", ".json"):
            # A record that exists is not written again, so leftovers are removed here.
            swept(self.path(name, suffix))
        try:
            record = read_json(self.path(name))
            if record["key"] != key or record["checksum"] != digest(record["content"]):
                return None
            return decode(record["content"])
        except (DataError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None

    def refuse_foreign(self, name: str) -> None:
        """Refuse to replace a file that was never a record, before any work is done.

        Even a damaged record begins as a record does.

        Raises:
            OutputError: A file that somebody else wrote has the name of the record.
        """
        path = self.path(name)
        if not path.is_file() or not path.stat().st_size:
            return
        with path.open("rb") as stream:
            if stream.read(len(_BEGINNING)) == _BEGINNING:
                return
        raise OutputError(
            f"'{path}' is no result of ours, so it is not overwritten; choose another folder."
        )

    def put(self, name: str, key: str, content: Any) -> None:
        """Keep the result of some work, as JSON parts."""
        # As it will be read back: a number that is not finite becomes null.
        parts = json.loads(to_json(content))
        with new_file(self.path(name), overwrite=True) as partial:
            write_json(partial, {"key": key, "checksum": digest(parts), "content": parts})
