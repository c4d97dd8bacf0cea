"""Kernel cache: the machine code of a kernel on disk, as long as nothing it is made of changes."""

__all__ = ["cached"]

import hashlib
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

# Where NUMBA_CACHE_DIR says, beside the file, in the user's cache; versions name them differently.
_Provided, _InTree, _UserWide = CompileResultCacheImpl._locator_classes[:3]


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


class _Warmed:
    """A locator of kernels that were compiled before, in a folder that cannot be written."""

    _py_file: str
    get_cache_path: Callable[[], str]

    def ensure_cache_path(self) -> None:
        """Refuse a folder without a kernel of the file."""
        if not any(Path(self.get_cache_path()).glob(f"{Path(self._py_file).stem}.*.nbi")):
            raise FileNotFoundError


def _warmed(locator: type[object]) -> type[object]:
    return type(f"Warmed{locator.__name__}", (_Warmed, locator), {})


class _Places(CompileResultCacheImpl):
    """Where kernels may lie: in the first place that serves."""

    _locator_classes = [  # noqa: RUF012 (a list by the class above)
        _Provided,
        _warmed(_Provided),
        _InTree,
        _warmed(_InTree),
        _UserWide,
    ]


class _KernelCache(FunctionCache):
    """Numba's cache, which by itself notices a change of the kernel's own file only."""

    _impl_class = _Places

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(
            cache_path=self.cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=stamp(function.__globals__),
        )

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


def _modules(module: dict[str, Any], found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add a module and those whose kernels or intrinsics it names, by name."""
    found[module["__name__"]] = module
    for value in list(module.values()):
        made_of = getattr(value, "py_func", None) or getattr(value, "_defn", None)
        home = getattr(made_of, "__module__", None)
        if home is not None and home not in found and home in sys.modules:
            _modules(vars(sys.modules[home]), found)
    return found


def _constants(module: dict[str, Any]) -> list[tuple[str, str]]:
    plain = (bool, int, float, np.generic)
    names = [name for name, value in module.items() if isinstance(value, plain)]
    return [(name, repr(module[name])) for name in sorted(names)]


@cache
def _source_digest(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()
