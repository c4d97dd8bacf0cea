"""Staging: hidden folders in which outputs are made until they are complete.

A writer holds a lock on its folder. The lock ends with the process, however it ends, so the next
writer of the same output can distinguish leftovers of a killed process from a running one.
"""

__all__ = ["flush_names", "held", "is_utf8", "remove", "replace", "staged", "swept"]

import ctypes
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_PARTIAL, _REPLACED = "partial", "replaced"


@contextmanager
def held(path: Path, *, without_locks: bool = True) -> Iterator[bool]:
    """Hold the lock of a folder or a file, and yield whether it was free.

    Args:
        path: What is locked.
        without_locks: Yielded on file systems without locks, as on some networks.
    """
    if sys.platform == "win32":  # no such locks: leftovers stay, writers do not see others
        yield without_locks
        return
    lock = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            yield without_locks
            return
        # The path may have been removed before it was locked.
        yield path.exists() and os.path.samestat(os.fstat(lock), path.stat())
    finally:
        os.close(lock)


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """Yield an empty hidden folder beside a path for our use alone; it is removed at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    swept(path)
    with ExitStack() as stack:
        folder = _locked(path, stack)
        try:
            yield folder
        finally:
            remove(folder)


def _locked(path: Path, stack: ExitStack) -> Path:
    """Make a hidden folder and lock it; repeat if it was removed before it was locked."""
    while True:
        folder = _sibling(path, _PARTIAL)
        folder.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            if stack.enter_context(held(folder)):
                return folder


def swept(path: Path) -> None:
    """Remove leftovers of killed writers beside an output.

    An output that was moved aside but never replaced gets its name back.
    """
    left = re.compile(rf"\.{re.escape(path.name[:200])}\.[0-9a-f]{{8}}\.({_PARTIAL}|{_REPLACED})")
    for folder in sorted(path.parent.iterdir()):
        match = left.fullmatch(folder.name)
        if not match or not folder.is_dir():
            continue
        with suppress(OSError), held(folder, without_locks=False) as free:
            if free and match[1] == _REPLACED and not path.exists():
                folder.rename(path)
            elif free:
                remove(folder)


def replace(made: Path, path: Path) -> None:
    """Give an output its name; an existing folder of that name is exchanged for it."""
    if not path.is_dir():
        made.replace(path)
        flush_names(path.parent)
        return
    with held(path):
        if _exchanged(made, path):
            flush_names(path.parent)
            remove(made)
            return
        aside = _sibling(path, _REPLACED)
        path.rename(aside)
        made.rename(path)
        flush_names(path.parent)
        remove(aside)


def _exchanged(a: Path, b: Path) -> bool:
    """Exchange two names atomically, if the system can, so that neither is ever missing.

    Linux can on most file systems. Elsewhere one of them has to be moved aside first.
    """
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(a), here, os.fsencode(b), exchange) == 0)


def flush_names(folder: Path) -> None:
    """Write the names in a folder to disk, so that a rename survives a power cut."""
    if sys.platform == "win32":  # a folder cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no such thing
            os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def is_utf8(path: Path) -> bool:
    """Tell whether a path can be written as text, as Polars and JSON need it."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        return False
    return True


def _sibling(path: Path, end: str) -> Path:
    return path.with_name(f".{path.name[:200]}.{uuid.uuid4().hex[:8]}.{end}")
