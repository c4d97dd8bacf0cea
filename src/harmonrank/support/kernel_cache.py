"""Kernel cache: the machine code of a kernel on disk, as long as nothing it is made of changes."""

__all__ = ["cached"]

import hashlib
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache


def cached(dispatcher: Any) -> Any:
    """Let a compiled function keep its machine code beside its file, or in the user's cache.

    Where nothing can be written, what lies there is read all the same: kernels may have been
    compiled when the package was installed (`harmonrank warm`). Where there is nothing, every
    process compiles. A shared temporary folder would be no substitute: what lies there could be
    someone else's code.
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
    """Add a module and those whose kernels or intrinsics it names, by name."""
    known[module["__name__"]] = module
    for value in list(module.values()):
        made_of = getattr(value, "py_func", None) or getattr(value, "_defn", None)
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
