"""Threads: how many this process may use. Everything that runs on several asks here.

Our own loops, LightGBM and PyTorch take this number; numba's kernels run on our threads. See
docs/threads.md.
"""

__all__ = ["limited_threads", "thread_count"]

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harmonrank.support.errors import UsageError

_limit: ContextVar[int | None] = ContextVar("harmonrank_threads", default=None)


def thread_count() -> int:
    """Return how many threads a computation may use, itself included.

    One for each core that the process may run on, and at most OMP_NUM_THREADS if that is set;
    `limited_threads` overrides both. It is looked up at each call, as both may change.
    """
    limit = _limit.get()
    if limit is not None:
        return limit
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    cores = _cores()
    return min(int(asked), cores) if asked.isdigit() and int(asked) else cores


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Use exactly so many threads for what this thread computes within.

    >>> with limited_threads(1):
    ...     thread_count()
    1
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise UsageError(f"`count` must be a whole number from 1 up. Got {count!r}.")
    token = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(token)
