"""Outputs that appear under their name only when they are complete."""

__all__ = ["check_output", "new_file", "new_folder", "read_json", "sha256", "write_json"]

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harmonrank.errors import DataError, OutputError


def check_output(path: str | Path, *, overwrite: bool = False) -> Path:
    """Return the path if something new can be written there, before any work is done."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise OutputError(f"'{path}' exists already; choose another name or pass --overwrite.")
    parent = path.absolute().parent
    existing = next(p for p in [parent, *parent.parents] if p.exists())
    if not existing.is_dir():
        raise OutputError(f"'{path}' cannot be written: '{existing}' is not a folder.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise OutputError(f"'{path}' cannot be written: no permission to write in '{existing}'.")
    return path


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a hidden sibling to write to; it takes the name when the block ends well."""
    with _staged(check_output(path, overwrite=overwrite)) as partial:
        yield partial


@contextmanager
def new_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a hidden sibling folder to fill; it takes the name when the block ends well."""
    with _staged(check_output(path, overwrite=overwrite)) as partial:
        partial.mkdir()
        yield partial


@contextmanager
def _staged(path: Path) -> Iterator[Path]:
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        _flush(partial)
        _replace(partial, path)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    finally:
        _remove(partial)


def _replace(partial: Path, path: Path) -> None:
    # A rename replaces a file or an empty folder in one step; a full folder steps aside first.
    if path.is_dir():
        aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.replaced")
        path.rename(aside)
        partial.rename(path)
        _remove(aside)
    else:
        partial.replace(path)


def _flush(partial: Path) -> None:
    # The rename must not reach the disk before the bytes do.
    for file in [partial] if partial.is_file() else [f for f in partial.rglob("*") if f.is_file()]:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write JSON that a person can read; a number that is not finite becomes null."""
    path.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read JSON, or say which file is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"'{path}' is not JSON: {error}.") from None


def sha256(path: Path) -> str:
    """Return the checksum of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
