"""Stored arrays: each is declared once, and checked before anything computes with it."""

__all__ = ["Array", "array_header", "array_names", "digest", "read_arrays", "write_arrays"]

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from harmonrank.support.errors import DataError

LARGEST = 1e30
"""Larger numbers are refused; sums of squares of smaller ones stay finite."""

_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "I64": "int64",
    "I32": "int32",
    "U32": "uint32",
    "U8": "uint8",
}


@dataclass(frozen=True)
class Array:
    """What a stored array must be.

    Attributes:
        shape: Sizes. A name stands for any size, the same one in all arrays of a file.
        dtype: Its exact type.
        low: Smallest value; NaN lies in no range.
        high: Largest value.
        rising: No value is smaller than the one before it, along the last axis.
        strictly: Each value is larger than the one before it.
        least: Smallest size that a name can stand for.
        gaps: Whether NaN may stand for a value that is missing.
    """

    shape: tuple[int | str, ...]
    dtype: str = "float64"
    low: float = -LARGEST
    high: float = LARGEST
    rising: bool = False
    strictly: bool = False
    least: int = 1
    gaps: bool = False

    def check(self, name: str, array: np.ndarray) -> None:
        """Refuse values that are not finite, out of range or out of order."""
        known = array[~np.isnan(array)] if self.gaps else array
        if not known.size:
            return
        low, high = known.min(), known.max()
        if not (low >= self.low and high <= self.high):
            raise DataError(
                f"array '{name}' must lie in [{self.low:g}, {self.high:g}], got {low:g} to {high:g}"
            )
        if self.rising or self.strictly:
            step = np.greater if self.strictly else np.greater_equal
            if not step(array[..., 1:], array[..., :-1]).all():
                raise DataError(f"array '{name}' must rise")


def write_arrays(
    path: Path, arrays: Mapping[str, np.ndarray], header: Mapping[str, str] | None = None
) -> None:
    """Write arrays as safetensors, with the permissions of any new file."""
    path.touch()
    mode = path.stat().st_mode
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    try:
        save_file(contiguous, path, metadata=None if header is None else dict(header))
    except SafetensorError as error:  # A full disk, say.
        raise OSError(str(error)) from error
    path.chmod(mode)


def read_arrays(path: Path, declared: Mapping[str, Array]) -> dict[str, np.ndarray]:
    """Read exactly the declared arrays.

    Names, types and shapes are compared with the declaration before an array is read, so no more is
    read than the file holds.

    Raises:
        DataError: An array is missing, not declared, or not as declared.
    """
    with _opened(path) as file:
        names = set(file.keys())
        for name in sorted(names ^ declared.keys()):
            known = name in declared
            raise DataError(f"array '{name}' is {'missing' if known else 'not expected'}")
        sizes: dict[str, int] = {}
        for name, array in declared.items():
            _compare(name, array, file.get_slice(name), sizes)
        arrays = {name: file.get_tensor(name) for name in declared}
    for name, array in declared.items():
        array.check(name, arrays[name])
    return arrays


def digest(arrays: Mapping[str, np.ndarray], header: Mapping[str, str]) -> str:
    """Return a checksum of arrays and the texts beside them, to be kept in the same file."""
    whole = hashlib.sha256(json.dumps(sorted(header.items())).encode())
    for name in sorted(arrays):
        array = arrays[name]
        whole.update(json.dumps([name, str(array.dtype), array.shape]).encode())
        whole.update(np.asarray(array, order="C").data)
    return whole.hexdigest()


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays of a file."""
    with _opened(path) as file:
        return list(file.keys())


def array_header(path: Path) -> dict[str, str]:
    """Return the texts beside the arrays of a file."""
    with _opened(path) as file:
        return dict(file.metadata() or {})


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise DataError(f"'{path.name}' is no safetensors file: {error}") from None


def _compare(name: str, declared: Array, stored: Any, sizes: dict[str, int]) -> None:
    """Refuse another type or shape; a named size is what it was at its first occurrence."""
    dtype, shape = _DTYPES.get(stored.get_dtype(), stored.get_dtype()), tuple(stored.get_shape())
    wanted = declared.shape
    if len(shape) == len(wanted):
        for size, named in zip(shape, wanted, strict=True):
            if isinstance(named, str) and size >= declared.least:
                sizes.setdefault(named, size)
        wanted = tuple(sizes.get(w, w) if isinstance(w, str) else w for w in wanted)
    if dtype != declared.dtype or shape != wanted:
        raise DataError(
            f"array '{name}' must be {declared.dtype} of shape ({', '.join(map(str, wanted))}), "
            f"got {dtype} of ({', '.join(map(str, shape))})"
        )
