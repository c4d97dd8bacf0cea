"""Threads: how many this process may use. Everything that runs on several asks here.

Our own loops, LightGBM and PyTorch take this number; numba's kernels run on our threads. See
docs/threads.md.
"""

__all__ = ["limited_threads", "one_blas_thread", "thread_count"]

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from harmonrank.errors import UsageError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_limit: ContextVar[int | None] = ContextVar("harmonrank_threads", default=None)


def thread_count() -> int:
    """Return how many threads a computation may use, itself included.

    One for each core that the process may run on, and no more than OMP_NUM_THREADS where that is
    set; `limited_threads` overrules both. It is looked up each time, as either may change.
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


class _Blas:
    """Threads of NumPy's matrix products: a setting of the process, so its users are counted."""

    def __init__(self) -> None:
        self.lock, self.users, self.limit = Lock(), 0, ExitStack()

    def enter(self) -> None:
        with self.lock:
            if not self.users:
                self.limit.enter_context(_controller().limit(limits=1, user_api="blas"))
            self.users += 1

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                self.limit.close()


_blas = _Blas()


@cache
def _controller() -> "ThreadpoolController":
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's matrix products run on the thread that asks for them.

    For code that several threads of ours run at once. The threads of BLAS wait for each other
    busily: on a busy machine, one that is not given a core keeps all the others spinning.
    """
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()
