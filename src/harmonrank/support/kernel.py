"""The one way this package compiles a loop: numba, cached on disk, no Python objects inside."""

__all__ = [
    "cached",
    "inline_kernel",
    "kernel",
    "record_kernel",
    "simd_function",
    "simd_kernel",
    "sum_kernel",
]

import gc
import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock

F = TypeVar("F", bound=Callable[..., Any])

# Arithmetic that may be rearranged comes out differently in each copy of a function. A call would
# reach the copy that was compiled first, in a process that compiles, and the caller's own, in one
# that loads its machine code: other last digits. A caller that has it inlined has no choice.
_COPIED = {"forceinline": True}


def cached(dispatcher: Any) -> Any:
    """Let a compiled function keep its machine code beside its file, or in the user's cache.

    Where nothing can be written, what lies there is read all the same: kernels may have been
    compiled when an image was built (`harmonrank serve MODEL --warm`). Where there is nothing,
    every process compiles. A shared temporary folder would be no substitute: what lies there could
    be someone else's code.
    """
    try:
        dispatcher._cache = _KernelCache(dispatcher.py_func)
    except (RuntimeError, OSError):  # Numba finds no place to write.
        return dispatcher
    return dispatcher


def _watchful(locator: Any) -> Any:
    """Return a place where numba keeps machine code as one that notices every change.

    By itself numba notices a change of the kernel's own file only, and asks that the folder can be
    written.
    """

    class Locator(locator):  # type: ignore[misc]
        def __init__(self, function: Any, file: str) -> None:
            super().__init__(function, file)
            self._kernels, self._stamp = f"{Path(file).stem}.*.nbi", stamp(function.__globals__)

        def get_source_stamp(self) -> str:
            return self._stamp

        def ensure_cache_path(self) -> None:
            try:
                super().ensure_cache_path()
            except OSError:
                if not any(Path(self.get_cache_path()).glob(self._kernels)):
                    raise

    return Locator


class _Places(CompileResultCacheImpl):
    """Where NUMBA_CACHE_DIR says, beside the file, in the user's cache: the first that serves."""

    _locator_classes = [*map(_watchful, CompileResultCacheImpl._locator_classes[:3])]  # noqa: RUF012


class _KernelCache(FunctionCache):
    """Numba's cache, for which a damaged file or a full disk is no error."""

    _impl_class = _Places

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code of a signature, or None; a damaged file counts as none."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # Unpickling a damaged file raises almost anything.
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code of a signature if the disk can be written and has room for it."""
        with suppress(OSError):
            super().save_overload(sig, data)


def stamp(module: dict[str, Any]) -> str:
    """Return a digest of all that the kernels of a module are made of.

    That is its source, the source of every module whose kernels it calls, theirs in turn, and
    the constants that each has imported.

    Args:
        module: Its names so far; what a kernel takes from elsewhere is imported above it.
    """
    digest = hashlib.sha256()
    for name, names in sorted(_modules(module, {}).items()):
        digest.update(_source_digest(names["__file__"]))
        digest.update(f"{name}:{_constants(names)}".encode())
    return digest.hexdigest()


def _modules(module: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add a module and those whose kernels, intrinsics or records it names, by name."""
    known[module["__name__"]] = module
    for value in list(module.values()):
        made_of = getattr(value, "py_func", None) or getattr(value, "_defn", None)
        if isinstance(value, type) and hasattr(value, "_fields"):
            made_of = value
        home = getattr(made_of, "__module__", None)
        if home is not None and home not in known and home in sys.modules:
            _modules(vars(sys.modules[home]), known)
    return known


def _constants(module: dict[str, Any]) -> list[tuple[str, str]]:
    plain = (bool, int, float, np.generic)
    names = [name for name, value in module.items() if isinstance(value, plain)]
    return [(name, repr(module[name])) for name in sorted(names)]


@cache
def _source_digest(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()


def kernel(function: F) -> F:
    """Compile a loop at its first call and keep the machine code for the next process.

    A kernel may call kernels of other files; a change there compiles it again as well.
    """
    return _compiled(function)


def inline_kernel(function: F) -> F:
    """Compile a small function that other kernels call in their inner loop."""
    return _compiled(function, inline="always")


def simd_kernel(function: F) -> F:
    """Compile a loop of vector instructions, LLVM's own or SIMD's (`harmonrank.support.simd`).

    Arithmetic raises nothing, and a product may be added in one instruction. Where an error could
    be raised, a division by zero say, numba would count the references of every array at each call.
    """
    return _compiled(function, fastmath={"contract"}, error_model="numpy", **_COPIED)


def record_kernel(function: F) -> F:
    """Compile a SIMD kernel that is given records of arrays and makes no array itself.

    Nothing is freed while it runs, so references are not counted: each field that is looked up in a
    loop would be counted there.
    """
    return _compiled(function, fastmath={"contract"}, error_model="numpy", _nrt=False, **_COPIED)


def simd_function(function: F) -> F:
    """Compile a part of SIMD kernels into each of them.

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
    # Threads are ours (`each_part`), never numba's: those do not survive a fork.
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


if hasattr(os, "register_at_fork"):
    # A fork waits for a compilation in another thread, whose lock the child could never get.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
