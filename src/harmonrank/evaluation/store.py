"""Store: finished work in a folder, found again by its key."""

__all__ = ["Store"]

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from harmonrank.data.digests import digest
from harmonrank.data.files import new_file, read_json, to_json, write_json
from harmonrank.data.staging import swept
from harmonrank.errors import DataError

T = TypeVar("T")


class Store:
    """A folder of records, one small JSON file each.

    A record holds the key of the work, what came of it, and a checksum. It appears under its name
    when it is complete. One that cannot be read, was changed since or has another key is as good
    as absent: its work is done again.

    Args:
        folder: Made when the first record is put.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, name: str, suffix: str = ".json") -> Path:
        """Return where a record is, or what belongs to it under another suffix."""
        return self.folder / f"{name}{suffix}"

    def find(self, name: str, key: str, decode: Callable[[Any], T | None]) -> T | None:
        """Return what came of the work with this key; None if it has to be done.

        Args:
            name: Of the record.
            key: A digest of all that decides the outcome.
            decode: Builds the outcome from JSON parts. What it cannot build is absent too.
        """
        if not self.path(name).is_file():
            return None
        for suffix in ("", ".json"):
            # Work that is found is not written again, so nothing else removes what was left.
            swept(self.path(name, suffix))
        try:
            record = read_json(self.path(name))
            if record["key"] != key or record["checksum"] != digest(record["content"]):
                return None
            return decode(record["content"])
        except (DataError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None

    def put(self, name: str, key: str, content: Any) -> None:
        """Keep the outcome of some work, as JSON parts."""
        # As it will be read back: a number that is not finite becomes null.
        parts = json.loads(to_json(content))
        with new_file(self.path(name), overwrite=True) as partial:
            write_json(partial, {"key": key, "checksum": digest(parts), "content": parts})
