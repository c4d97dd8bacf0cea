"""Parallel: threads share the parts of one job, each taking the next as long as there are any."""

__all__ = ["claim", "each_part", "edges_of", "finish", "in_turn", "map_parts"]

import os
import platform
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from numpy.typing import NDArray

from harmonrank.support.kernel import kernel
from harmonrank.support.threads import thread_count

Given = TypeVar("Given")
Result = TypeVar("Result")

_LOOKS = 20_000  # Some part of a millisecond, longer than a part takes.
_AT_ONCE = 2  # Large parts, each of which has loops that run on several threads again.


def _adding(_typing: Any, address: Any, _amount: Any) -> Any:
    """Add to an int64 that other threads change too; return what it was."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", pointer, arguments[1], "seq_cst")

    return numba.int64(address, numba.int64), emit


def _pausing(_typing: Any) -> Any:
    """Tell the processor "I am only waiting": it leaves the core to its other thread."""

    def emit(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        if platform.machine() in ("x86_64", "AMD64"):
            pause = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), pause), [])
        return context.get_dummy_value()

    return numba.none(), emit


_add: Any = intrinsic(_adding)
_pause: Any = intrinsic(_pausing)


@kernel
def claim(claims: Any, who: int, parts: int) -> int:
    """Return the next part for thread `who`, or `parts` if none is left.

    Every thread has a range of its own, so that it finds in its cache what it left there; when
    that is done it takes from those of the others.

    Args:
        claims: int64, (threads + 1, 8), zeros at first, each row a cache line: how many parts of
            each thread's range are claimed, and how many are finished in all.
        who: From 0 to threads − 1.
        parts: How many there are.
    """
    threads = len(claims) - 1
    for hop in range(threads):
        t = (who + hop) % threads
        part: int = parts * t // threads + _add(claims.ctypes.data + 64 * t, 1)
        if part < parts * (t + 1) // threads:
            return part
    return parts


@kernel
def finish(claims: Any) -> None:
    """Count a claimed part as done."""
    _add(claims.ctypes.data + 64 * (len(claims) - 1), 1)


@kernel
def _watch(claims: Any, parts: int, looks: int) -> bool:
    """Tell whether so many parts are finished before having looked so often."""
    for _ in range(looks):
        if _add(claims.ctypes.data + 64 * (len(claims) - 1), 0) >= parts:
            return True
        _pause()
    return False


def edges_of(blocks: int, size: int) -> NDArray[np.int64]:
    """Cut blocks into parts of `size`, the last one perhaps smaller.

    >>> edges_of(20, 8)
    array([ 0,  8, 16, 20])
    """
    return np.append(np.arange(0, blocks, size), blocks)


def each_part(work: Callable[[int], Any], parts: int, threads: int | None = None) -> None:
    """Call `work(part)` for every part on several threads; what it returns is not kept.

    A thread that sleeps can take longer to wake than a batch takes to fuse, and a busy machine may
    not wake it at all for a while. So nobody waits for a thread to begin: this one works at
    once, and waits at the end only for parts that others have claimed.

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
    claims = np.zeros((threads + 1, 8), np.int64)

    def take(who: int) -> None:
        while (part := claim(claims, who, parts)) < parts:
            work(part)
            finish(claims)

    others: list[Future[Any]] = []
    # Once the main thread has ended no pool takes work any more, and this thread does it all.
    with suppress(RuntimeError):
        others.extend(_pool(who).submit(take, who) for who in range(1, threads))
    try:
        take(0)
    except BaseException:
        wait(_begun(others))
        raise
    if others and not _watch(claims, parts, _LOOKS):
        for other in _begun(others):
            other.result()


def _begun(others: list[Future[Any]]) -> list[Future[Any]]:
    """Return those that have begun; the rest is called off.

    One that has not begun has claimed nothing, and may never begin: when a part of one job is
    itself a job, its thread may be the one that waits.
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

    For large parts, of which few may be in memory at once: two are, however many threads there are.
    So one can be read while another is computed, and loops of one thread are no standstill.

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
                if len(coming) == at_once:  # Results may be large, so none waits for long.
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for part_ in coming:
                part_.cancel()


@cache
def _pool(who: int) -> ThreadPoolExecutor:
    """Return the thread of that number, always the same one for the sake of its cache."""
    return ThreadPoolExecutor(1, thread_name_prefix=f"harmonrank-{who}")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork, so the child makes its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
