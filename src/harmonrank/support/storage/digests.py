"""Digests: checksums by which contents are found again, and changes found out."""

__all__ = ["digest", "file_sums"]

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harmonrank.support.storage.files import sha256


def digest(value: Any) -> str:
    """Return a checksum of JSON parts, whatever the order of their keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_sums(folder: Path, outputs: Iterable[str]) -> dict[str, str]:
    """Return the checksum of every file among the outputs, which may be folders."""
    found: dict[str, str] = {}
    for output in outputs:
        path = folder / output
        files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
        found |= {f.relative_to(folder).as_posix(): sha256(f) for f in files}
    return found
