"""Outputs that appear under their name only when they are complete."""

__all__ = [
    "check_output",
    "flush",
    "new_file",
    "new_folder",
    "numbered",
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
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar, overload

from harmonrank.support.errors import DataError, OutputError
from harmonrank.support.storage.decoding import MOST_BYTES, decode_json, read_bytes
from harmonrank.support.storage.staging import (
    flush_names,
    held,
    is_utf8,
    remove,
    replace,
    staged,
    swept,
)
from harmonrank.support.storage.urls import is_url, protocol_of, shown_url

T = TypeVar("T")

_KEY = "key.json"


def check_output(
    path: str | Path, *, overwrite: bool = False, holds: str | None = None, begins: str = ""
) -> Path:
    """Return the resolved path if something new can be written there, before any work is done.

    Links are followed, so their target is replaced, and `..` is resolved first: the path that is
    checked is the path that is written.

    Args:
        path: Where to write; missing parent folders are made later.
        overwrite: Allow an existing output to be replaced.
        holds: The output is a folder. Only a folder with this file is replaced, so a mistyped name
            costs nothing.
        begins: The output is a file. Only a file that begins with this text is replaced.
    """
    _refuse_url(path)
    path = Path(path)
    with _writing(path):
        if _is_device(path):
            return path
        target = _resolved(path)
        if not is_utf8(target):
            raise OutputError(f"'{target}' is not UTF-8; choose another name.")
        _refuse_existing(target, path, overwrite, holds, begins)
        existing = next(p for p in target.parents if p.exists())
        if not existing.is_dir():
            raise OutputError(f"'{path}' cannot be written: '{existing}' is not a folder.")
        # Only an attempt tells: permissions do not show a read-only disk, and not to root.
        with TemporaryFile(dir=existing):
            return target


def _refuse_url(path: str | Path) -> None:
    # A path has lost one of the slashes of a URL.
    name = re.sub(r"^([A-Za-z][A-Za-z0-9+.\-]+):/+", r"\1://", str(path))
    if is_url(name) and not Path(f"{protocol_of(name)}:").exists():
        raise OutputError(
            f"'{shown_url(name)}' is a URL, and outputs are written to this machine; name a file "
            "or a folder here, and copy it from there."
        )


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError:  # an OSError from Python 3.13 on
        raise OutputError(
            f"'{path}' cannot be written: its links lead in a circle; choose another name."
        ) from None


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or str(error).rstrip(".")
        raise OutputError(f"'{path}' cannot be written: {reason}.") from error


def _refuse_existing(
    target: Path, path: Path, overwrite: bool, holds: str | None, begins: str = ""
) -> None:
    if not target.exists():
        return
    if not overwrite:
        raise OutputError(
            f"'{path}' exists already; choose another name or pass --overwrite "
            "(in Python, overwrite=True)."
        )
    if holds is None and target.is_dir():
        raise OutputError(f"'{path}' is a folder; choose the name of a file.")
    if holds is not None and not target.is_dir():
        raise OutputError(f"'{path}' is a file; choose the name of a folder.")
    if holds is not None and any(target.iterdir()) and not (target / holds).is_file():
        raise OutputError(
            f"'{path}' is a folder without {holds}, so it is not overwritten; choose another name."
        )
    if begins and target.stat().st_size and not _begins(target, begins):
        raise OutputError(
            f"'{path}' is a file that does not begin with {begins}, as what is to be written "
            "does, so it is not overwritten; choose another name."
        )


def _begins(path: Path, start: str) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(start)) == start.encode()


def _is_device(path: Path) -> bool:
    # Such as /dev/stdout or a pipe: it is written to, never replaced.
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = False, begins: str = "") -> Iterator[Path]:
    """Yield a hidden file to write to; it takes the name when the block ends well."""
    target = check_output(path, overwrite=overwrite, begins=begins)
    if _is_device(target):
        with _writing(target):
            yield target
        return
    with _replacing(target, overwrite, None, begins) as made:
        yield made


@contextmanager
def new_folder(path: str | Path, *, holds: str, overwrite: bool = False) -> Iterator[Path]:
    """Yield a hidden folder to fill; it takes the name when the block ends well.

    Only a folder with the file `holds`, or an empty one, is ever overwritten.
    """
    target = check_output(path, overwrite=overwrite, holds=holds)
    with _replacing(target, overwrite, holds) as made:
        made.mkdir()
        yield made


@contextmanager
def _replacing(
    target: Path, overwrite: bool, holds: str | None, begins: str = ""
) -> Iterator[Path]:
    with _writing(target), staged(target) as folder:
        made = folder / target.name
        yield made
        flush(made)
        _refuse_existing(target, target, overwrite, holds, begins)
        replace(made, target)


@contextmanager
def resumable_folder(
    path: str | Path, key: Mapping[str, Any], *, holds: str, overwrite: bool = False
) -> Iterator[Path]:
    """Yield a hidden sibling folder that the next run continues if the block was interrupted.

    It takes the name when the block ends well. A folder that was begun with another `key`, the JSON
    that identifies the work, is emptied first. It is removed after a DataError.

    Raises:
        OutputError: Another process is at work on the same output.
    """
    target = check_output(path, overwrite=overwrite, holds=holds)
    partial = target.with_name(f".{target.name[:200]}.resumable")
    with _writing(target):
        partial.mkdir(parents=True, exist_ok=True)
        swept(target)
        with held(partial) as mine:
            if not mine:
                raise OutputError(
                    f"'{path}' is being written by another process; wait for it to end, or choose "
                    "another name."
                )
            _begin(partial, key)
            try:
                yield partial
            except DataError:
                remove(partial)
                raise
            # Files that a killed run of the same work was writing.
            for left in partial.rglob(".*.partial"):
                remove(left)
            (partial / _KEY).unlink()
            flush(partial)
            _refuse_existing(target, target, overwrite, holds)
            replace(partial, target)


def _begin(partial: Path, key: Mapping[str, Any]) -> None:
    """Empty a folder that was begun with another key, or with one that cannot be read."""
    try:
        same = read_json(partial / _KEY) == decode_json(to_json(key).encode(), object, "key")
    except DataError:
        same = False
    if not same:
        for left in partial.iterdir():
            remove(left)
        with new_file(partial / _KEY) as made:
            write_json(made, key)


def flush(made: Path) -> None:
    """Write a file, or all files of a folder, to disk before they are renamed."""
    for path in [made, *made.rglob("*")] if made.is_dir() else [made]:
        if path.is_dir():
            flush_names(path)
            continue
        with path.open("rb") as stream:
            os.fsync(stream.fileno())


def to_json(value: Any) -> str:
    """Return indented JSON; a number that is not finite becomes null.

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
    """Read JSON as a type; an error names the file and the reason."""
    try:
        text = read_bytes(path, MOST_BYTES)
    except OSError as error:
        raise DataError(f"'{path}' cannot be read: {error.strerror or error}.") from None
    return decode_json(text, kind, f"'{path}'")


def numbered(folder: Path) -> list[int]:
    """Return the numbers that are names of files and folders in a folder, ascending."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


def sha256(path: Path) -> str:
    """Return the checksum of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
