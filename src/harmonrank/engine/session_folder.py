"""The folder of a Ray that was started for a command: gone at its end, however it ends.

The process that made it holds a lock on a file in it. The lock ends with the process, so that the
next one can tell the folder of a killed one from one in use.
"""

__all__ = ["session_folder"]

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_PREFIX, _OWNER = "hr-ray-", "owner"


@contextmanager
def session_folder() -> Iterator[Path]:
    """Yield an empty folder, ours alone; those that killed processes have left are removed."""
    _sweep()
    with ExitStack() as stack:
        folder = _made(stack)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _made(stack: ExitStack) -> Path:
    while True:
        # Names of sockets are bounded, so this folder is not below a user's own.
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        (folder / _OWNER).touch()
        # Another process may sweep it away before it is locked; then there is no such file.
        with suppress(FileNotFoundError):
            if stack.enter_context(_held(folder / _OWNER)):
                return folder


def _sweep() -> None:
    """Remove the folders whose owners have ended."""
    if sys.platform == "win32":  # no such locks: leftovers stay
        return
    for owner in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_OWNER}"):
        with suppress(OSError), _held(owner) as free:
            if free:
                shutil.rmtree(owner.parent, ignore_errors=True)


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Hold the lock of a file, and yield whether it was free and the file is still there."""
    if sys.platform == "win32":
        yield True
        return
    lock = os.open(path, os.O_RDWR)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield path.exists() and os.path.samestat(os.fstat(lock), path.stat())
    finally:
        os.close(lock)
