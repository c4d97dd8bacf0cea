"""Forks: whether this process was forked from one in which Polars had started its threads."""

__all__ = ["require_polars_threads"]

import os
import re
from pathlib import Path

from harmonrank.support.errors import UsageError

_state = {"running": False, "lost": False}


def require_polars_threads(what: str) -> None:
    """Refuse what would wait forever for threads that did not survive a fork."""
    if _state["lost"]:
        raise UsageError(
            f"{what} needs the threads of Polars, which this process lost when it was forked; "
            "start processes with 'spawn' or 'forkserver', or `score` tables in memory."
        )


def _look() -> None:
    # Those that compute are numbered; another begins with the import, and nobody waits for it.
    _state["running"] = any(re.match(r"polars-\d", name) for name in _thread_names())


def _lose() -> None:
    _state["lost"] = _state["lost"] or _state["running"]


def _thread_names() -> list[str]:
    try:
        return [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    except OSError:  # Only Linux tells; a thread may end while it is asked.
        return []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_look, after_in_child=_lose)
