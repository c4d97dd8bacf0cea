"""The one way this package compiles a loop: numba, cached on disk, no Python objects inside."""

__all__ = ["inline_kernel", "kernel", "parallel_kernel", "sum_kernel"]

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a loop at its first call and keep the machine code for the next process.

    Numba's cache notices a change of the file that holds the kernel, but not of a kernel in
    another file that it calls. So kernels that call each other live in one file.
    """
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def inline_kernel(function: F) -> F:
    """Compile a small function that other kernels of the same file call in their inner loop."""
    return cast(F, numba.njit(cache=True, nogil=True, inline="always")(function))


def parallel_kernel(function: F) -> F:
    """Compile a loop whose `prange` uses all threads; its result must not depend on timing."""
    return cast(F, numba.njit(cache=True, nogil=True, parallel=True)(function))


def sum_kernel(function: F) -> F:
    """Compile a loop whose sums may be added in another order, so that they become vector sums.

    The order is fixed by the machine code, so the same machine adds the same way every time.
    """
    freedom = {"reassoc", "nsz", "contract"}
    return cast(F, numba.njit(cache=True, nogil=True, fastmath=freedom)(function))
