"""Together: threads share the parts of one batch, each taking the next as long as there are any."""

__all__ = ["edges_of", "threads", "together"]

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import watch

_LOOKS = 20_000  # Some part of a millisecond, longer than a part takes.


@cache
def threads() -> int:
    """Return how many threads to use: OMP_NUM_THREADS if it is set, else one per core."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) else os.cpu_count() or 1


def edges_of(blocks: int, size: int) -> NDArray[np.int64]:
    """Cut blocks into parts of `size`, the last one perhaps smaller.

    >>> edges_of(20, 8)
    array([ 0,  8, 16, 20])
    """
    return np.append(np.arange(0, blocks, size), blocks)


def together(work: Callable[[NDArray[np.int64], int], Any], parts: int, threads: int) -> None:
    """Call `work(claims, who)` on several threads at once, until all parts are done.

    A thread that sleeps can take longer to wake than a batch takes to fuse, and a busy machine may
    not wake it at all for a while. So nobody waits for a thread to begin: this one works at
    once, and waits at the end only for parts that others have claimed.

    Args:
        work: A kernel that claims parts until there are none; it must release the lock.
        parts: How many there are.
        threads: How many may work, this one included.
    """
    threads = max(1, min(threads, parts))
    claims = np.zeros((threads + 1, 8), np.int64)
    others = [_pool(who).submit(work, claims, who) for who in range(1, threads)]
    work(claims, 0)
    if others and not watch(claims, parts, _LOOKS):
        for other in others:
            other.result()


@cache
def _pool(who: int) -> ThreadPoolExecutor:
    """Return the thread of that number, always the same one for the sake of its cache."""
    return ThreadPoolExecutor(1, thread_name_prefix=f"harmonrank-{who}")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork, so the child makes its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
