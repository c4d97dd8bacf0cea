"""Parallel: threads share the parts of one job; each takes the next part until none is left."""

__all__ = ["each_part", "edges_of", "in_turn", "map_parts"]

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from itertools import pairwise
from time import sleep
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.threads import thread_count

Given = TypeVar("Given")
Result = TypeVar("Result")

_LOOKS = 500  # Some part of a millisecond, longer than a part takes.
_AT_ONCE = 2  # Large parts, each of which has loops that run on several threads again.


def edges_of(blocks: int, size: int) -> NDArray[np.int64]:
    """Cut blocks into parts of `size`, the last one perhaps smaller.

    >>> edges_of(20, 8)
    array([ 0,  8, 16, 20])
    """
    return np.append(np.arange(0, blocks, size), blocks)


def each_part(work: Callable[[int], Any], parts: int, threads: int | None = None) -> None:
    """Call `work(part)` for every part on several threads; what it returns is not kept.

    A sleeping thread can take longer to wake than a batch takes to fuse, and on a busy machine much
    longer. So this thread begins at once, never waits for others to begin, and waits at the end
    only for parts that others have taken.

    >>> squares = np.zeros(4)
    >>> each_part(lambda part: squares.__setitem__(part, part**2), 4)
    >>> squares
    array([0., 1., 4., 9.])

    Args:
        work: Python around kernels, which release the lock.
        parts: How many there are.
        threads: How many may work, this one included; `thread_count()` if left out.
    """
    threads = max(1, min(thread_count() if threads is None else threads, parts))
    if threads == 1:  # There is nothing to share.
        for part in range(parts):
            work(part)
        return
    # Every thread has a range of its own, so that it finds in its cache what it left there; when
    # that is done it takes from those of the others. To take the next number is one operation.
    ends, done = [parts * who // threads for who in range(threads + 1)], list[int]()
    ranges = [iter(range(*own)) for own in pairwise(ends)]

    def take(who: int) -> None:
        for left in ranges[who:] + ranges[:who]:
            for part in left:
                work(part)
                done.append(part)

    others: list[Future[Any]] = []
    # After the main thread has ended no pool accepts work, and this thread does all of it.
    with suppress(RuntimeError):
        others.extend(_pool(who).submit(take, who) for who in range(1, threads))
    try:
        take(0)
    except BaseException:
        wait(_begun(others))
        raise
    for _ in range(_LOOKS):
        if len(done) == parts:
            return
        sleep(0)  # Give the interpreter's lock to the others.
    for other in _begun(others):
        other.result()


def _begun(others: list[Future[Any]]) -> list[Future[Any]]:
    """Return the futures that have begun, and cancel the rest.

    A future that has not begun has taken no part, and may never begin: when a part of a job is
    itself a job, its thread may be the one that waits here.
    """
    return [other for other in others if not other.cancel()]


def map_parts(
    work: Callable[[Given], Result], items: Sequence[Given], threads: int | None = None
) -> list[Result]:
    """Return what `work` makes of each item, in order, several at a time.

    >>> map_parts(lambda item: item * item, [1, 2, 3])
    [1, 4, 9]
    """
    results: list[Result | None] = [None] * len(items)

    def one(part: int) -> None:
        results[part] = work(items[part])

    each_part(one, len(items), threads)
    return cast(list[Result], results)


def in_turn(work: Callable[[int], Result], parts: int) -> Iterator[Result]:
    """Yield what `work` makes of each part, in order; one is begun while another is worked on.

    For large parts, of which at most two are in memory at once, whatever the number of threads. So
    one can be read while another is computed.

    >>> list(in_turn(lambda part: part**2, 4))
    [0, 1, 4, 9]
    """
    at_once = min(_AT_ONCE, thread_count(), parts)
    if at_once < 2:  # Nothing to share.
        yield from map(work, range(parts))
        return
    coming: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(at_once, thread_name_prefix="harmonrank-turn") as pool:
        try:
            for part in range(parts):
                # A limit of threads holds for what is computed here, too.
                coming.append(pool.submit(copy_context().run, work, part))
                if len(coming) == at_once:  # Results may be large, so they are not kept.
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for part_ in coming:
                part_.cancel()


@cache
def _pool(who: int) -> ThreadPoolExecutor:
    """Return the thread of a number, always the same one so that its cache is warm."""
    return ThreadPoolExecutor(1, thread_name_prefix=f"harmonrank-{who}")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork, so the child makes its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
