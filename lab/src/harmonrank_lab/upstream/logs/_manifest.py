"""Manifest: where an imported log came from, and what every file of it holds."""

__all__ = ["FORMAT", "MANIFEST", "Manifest", "about"]

from pathlib import Path
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from harmonrank.support.storage import sha256

FORMAT = 1
MANIFEST = "manifest.json"

_Rows = Annotated[int, Meta(ge=0, le=2**53)]
_Name = Annotated[str, Meta(pattern=r"^((train|valid|test)/)?[\w-]+\.parquet$")]


class _FileAbout(TypedDict):
    """A file of an imported log."""

    bytes: _Rows
    sha256: str
    rows: _Rows


class _Counts(TypedDict):
    """A number for each part."""

    train: _Rows
    valid: _Rows
    test: _Rows


class _Positives(TypedDict):
    """The positives of each objective in each part."""

    train: dict[str, _Rows]
    valid: dict[str, _Rows]
    test: dict[str, _Rows]


class Manifest(TypedDict):
    """The manifest, as far as it is read again; the rest is for people."""

    format: int
    kind: str
    rows: _Counts
    positives: _Positives
    notes: list[str]
    oddities: dict[str, _Rows]
    files: dict[_Name, _FileAbout]


def about(path: Path) -> dict[str, Any]:
    """Return the size and checksum of a file."""
    return {"bytes": path.stat().st_size, "sha256": sha256(path)}
