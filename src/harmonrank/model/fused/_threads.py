"""Threads: run a kernel on parts of a batch at the same time."""

__all__ = ["in_parts", "parts_of", "threads"]

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="harmonrank")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork, so the child makes its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)


@cache
def threads() -> int:
    """Return how many threads to use: OMP_NUM_THREADS if it is set, else one per core."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) else os.cpu_count() or 1


def parts_of(rows: int, threads: int, block: int, least: int) -> list[slice]:
    """Cut rows into at most one part per thread, at whole blocks, of about `least` rows or more.

    >>> parts_of(300, threads=2, block=64, least=100)
    [slice(0, 128, None), slice(128, 300, None)]
    """
    threads = max(1, min(threads, rows // least))
    blocks = -(-rows // block)
    edges = [block * (blocks * part // threads) for part in range(threads)] + [rows]
    return [slice(*edge) for edge in pairwise(edges)]


def in_parts(work: Callable[[int], None], parts: int) -> None:
    """Call `work` with 0 … parts−1 at once, with 0 on this thread; it must release the lock."""
    others = [_pool(parts - 1).submit(work, part) for part in range(1, parts)]
    work(0)
    for other in others:
        other.result()
