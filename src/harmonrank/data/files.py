"""Outputs that appear under their name only when they are complete."""

__all__ = [
    "check_output",
    "new_file",
    "new_folder",
    "read_json",
    "resumable_folder",
    "sha256",
    "to_json",
    "write_json",
]

import hashlib
import json
import math
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar, overload

from harmonrank.data.decoding import MOST_BYTES, decode_json
from harmonrank.errors import DataError, OutputError

T = TypeVar("T")


def check_output(path: str | Path, *, overwrite: bool = False, holds: str | None = None) -> Path:
    """Return the path if something new can be written there, before any work is done.

    Args:
        path: Where to write; folders above it are made when needed.
        overwrite: Allow what is there to be replaced.
        holds: The output is a folder, and this file in it shows that an existing one is of our
            making. No other folder is ever replaced, so a mistyped name costs nothing.
    """
    path = Path(path)
    with _writing(path):
        _refuse_existing(path, overwrite, holds)
        if _is_device(path):
            return path
        parent = path.absolute().parent
        existing = next(p for p in [parent, *parent.parents] if p.exists())
        if not existing.is_dir():
            raise OutputError(f"'{path}' cannot be written: '{existing}' is not a folder.")
        # Only an attempt tells: permissions say nothing about a read-only disk, or to root.
        with TemporaryFile(dir=existing):
            return path


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written: {error.strerror or error}.") from error


def _refuse_existing(path: Path, overwrite: bool, holds: str | None) -> None:
    if not path.exists() or _is_device(path):
        return
    if not overwrite:
        raise OutputError(
            f"'{path}' exists already; choose another name or pass --overwrite "
            "(in Python, overwrite=True)."
        )
    if holds is None and path.is_dir():
        raise OutputError(f"'{path}' is a folder; choose the name of a file.")
    if holds is not None and not path.is_dir():
        raise OutputError(f"'{path}' is a file; choose the name of a folder.")
    if holds is not None and any(path.iterdir()) and not (path / holds).is_file():
        raise OutputError(
            f"'{path}' is a folder without {holds}, so it is not overwritten; choose another name."
        )


def _is_device(path: Path) -> bool:
    # Such as /dev/stdout or a pipe: it is written to, never replaced.
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a hidden sibling to write to; it takes the name when the block ends well."""
    path = check_output(path, overwrite=overwrite)
    if _is_device(path):
        yield path
        return
    with _staged(path) as partial:
        yield partial


@contextmanager
def new_folder(path: str | Path, *, holds: str, overwrite: bool = False) -> Iterator[Path]:
    """Yield a hidden sibling folder to fill; it takes the name when the block ends well.

    Only a folder with the file `holds`, or an empty one, is ever overwritten.
    """
    with _staged(check_output(path, overwrite=overwrite, holds=holds)) as partial:
        partial.mkdir()
        yield partial


@contextmanager
def resumable_folder(
    path: str | Path, key: Mapping[str, Any], *, holds: str, overwrite: bool = False
) -> Iterator[Path]:
    """Yield a hidden sibling folder that is found again if the block was cut short.

    It takes the name when the block ends well. One that was begun with another `key`, the JSON
    that stands for the work, is begun anew; one whose work the data do not allow is removed.
    """
    path = check_output(path, overwrite=overwrite, holds=holds).resolve()
    partial = path.with_name(f".{path.name[:200]}.resumable")
    with _writing(path):
        if not (partial / "key.json").is_file() or read_json(partial / "key.json") != key:
            _remove(partial)
            partial.mkdir(parents=True)
            write_json(partial / "key.json", key)
        try:
            yield partial
        except DataError:
            _remove(partial)
            raise
        (partial / "key.json").unlink()
        _flush(partial)
        _replace(partial, path)


@contextmanager
def _staged(path: Path) -> Iterator[Path]:
    # Links are followed, so that what they point to is replaced; `.` gets its real name.
    path = path.resolve()
    partial = path.with_name(f".{path.name[:200]}.{uuid.uuid4().hex[:8]}.partial")
    try:
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield partial
            _flush(partial)
            _replace(partial, path)
    finally:
        _remove(partial)


def _replace(partial: Path, path: Path) -> None:
    # A rename replaces a file or an empty folder in one step; a full folder steps aside first.
    if path.is_dir():
        aside = path.with_name(f".{path.name[:200]}.{uuid.uuid4().hex[:8]}.replaced")
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


def to_json(value: Any) -> str:
    """Return JSON that a person can read; a number that is not finite becomes null.

    >>> print(to_json({"auc": float("nan")}))
    {
      "auc": null
    }
    """
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, value: Any) -> None:
    """Write what `to_json` returns."""
    path.write_text(to_json(value) + "\n", encoding="utf-8")


@overload
def read_json(path: Path) -> Any: ...


@overload
def read_json(path: Path, kind: type[T]) -> T: ...


def read_json(path: Path, kind: Any = Any) -> Any:
    """Read JSON as a type, or say which file is not that, and why."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise DataError(f"'{path}' is larger than any JSON file of ours.")
        text = path.read_bytes()
    except OSError as error:
        raise DataError(f"'{path}' cannot be read: {error.strerror or error}.") from None
    return decode_json(text, kind, f"'{path}'")


def sha256(path: Path) -> str:
    """Return the checksum of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
