"""The one way this package compiles a loop: numba, cached on disk, no Python objects inside."""

__all__ = [
    "claim",
    "finish",
    "inline_kernel",
    "kernel",
    "lane_function",
    "lane_kernel",
    "sum_kernel",
    "watch",
]

import gc
import os
import platform
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

from harmonrank.support.kernel_cache import cached

F = TypeVar("F", bound=Callable[..., Any])

# Arithmetic that may be rearranged comes out differently in each copy of a function. A call would
# reach the copy that was compiled first, in a process that compiles, and the caller's own, in one
# that loads its machine code: other last digits. A caller that has it inlined has no choice.
_COPIED = {"forceinline": True}


def kernel(function: F) -> F:
    """Compile a loop at its first call and keep the machine code for the next process.

    A kernel may call kernels of other files; a change there compiles it again as well.
    """
    return _compiled(function)


def inline_kernel(function: F) -> F:
    """Compile a small function that other kernels call in their inner loop."""
    return _compiled(function, inline="always")


def lane_kernel(function: F) -> F:
    """Compile a loop of vector instructions, LLVM's own or SIMD's (`harmonrank.support.simd`).

    Arithmetic raises nothing, and a product may be added in one instruction. Where an error could
    be raised, a division by zero say, numba would count the references of every array at each call.
    """
    return _compiled(function, fastmath={"contract"}, error_model="numpy", **_COPIED)


def lane_function(function: F) -> F:
    """Compile a part of lane kernels into each of them.

    As a function of its own it would be optimised again in every kernel that calls it, which takes
    most of the time of a first call, and each call would hand over a hundred numbers.
    """
    return _compiled(function, fastmath={"contract"}, error_model="numpy", inline="always")


def sum_kernel(function: F) -> F:
    """Compile a loop whose sums may be added in another order, so that they become vector sums.

    The order is fixed by the machine code, so the same machine adds the same way every time.
    """
    return _compiled(function, fastmath={"reassoc", "nsz", "contract"}, **_COPIED)


def _compiled(function: F, **options: Any) -> F:
    # Threads are ours (`together`), never numba's: those do not survive a fork.
    # Nobody calls them from C, so there is no wrapper to compile for that.
    options |= {"nogil": True, "no_cfunc_wrapper": True}
    dispatcher = cached(numba.njit(**options)(function))
    dispatcher.compile = _without_collection(dispatcher.compile)
    return cast(F, dispatcher)


def _without_collection(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """Leave garbage for later: looking for it takes a quarter of a first call's time in vain."""

    @wraps(compile_)
    def compiled(*given: Any) -> Any:
        if not gc.isenabled():
            return compile_(*given)
        gc.disable()
        try:
            return compile_(*given)
        finally:
            gc.enable()

    return compiled


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
def watch(claims: Any, parts: int, looks: int) -> bool:
    """Tell whether so many parts are finished before having looked so often."""
    for _ in range(looks):
        if _add(claims.ctypes.data + 64 * (len(claims) - 1), 0) >= parts:
            return True
        _pause()
    return False


if hasattr(os, "register_at_fork"):
    # A fork waits for a compilation in another thread, whose lock the child could never get.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
