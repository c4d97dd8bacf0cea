"""Saved models: a folder of safetensors and JSON with a format version and checksums.

A model is never pickled. What travels to the workers of an engine is that folder as bytes, which a
worker checks and decodes as `load` does.
"""

__all__ = ["FORMAT", "MODEL", "PackedModel", "checksums", "load", "pack", "save"]

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import msgspec

import harmonrank
from harmonrank.data import ContextEncoder, Schema
from harmonrank.fusion.catalogue import method_class
from harmonrank.fusion.fitted import Fitted
from harmonrank.fusion.method import Method, changed
from harmonrank.support.errors import (
    DataError,
    DependencyError,
    HarmonRankError,
    ModelFileError,
    UsageError,
)
from harmonrank.support.storage.arrays import read_arrays, write_arrays
from harmonrank.support.storage.decoding import check_format
from harmonrank.support.storage.files import new_folder, read_json, sha256, write_json
from harmonrank.support.storage.stored import declared, restored, stored

FORMAT = 4
MODEL = "model.json"
"""The file that tells a saved model from any other folder."""

T = TypeVar("T")

_WEIGHTS, _CHECKSUMS = "weights.safetensors", "checksums.json"
_FITTED = "fitted/"
"""Begins the names of the arrays that every model has; those of the method have plain names."""


class _Header(msgspec.Struct):
    """What every format has."""

    format: int
    harmonrank: str


class _Document(_Header, forbid_unknown_fields=True):
    """All that a saved model holds besides arrays."""

    method: str
    config: dict[str, Any]
    schema: dict[str, Any]
    fitted: dict[str, Any]
    state: dict[str, Any]


def save(method: Method, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted method; the folder appears when it is complete."""
    schema = method.schema  # refuses a method that is not fitted
    fitted, shared = stored(method.fitted, _FITTED)
    state, own = stored(method.state)
    document = {
        "format": FORMAT,
        "harmonrank": harmonrank.__version__,
        "method": method.name,
        "config": dataclasses.asdict(method.config),
        "schema": schema.to_dict(),
        "fitted": fitted,
        "state": state,
    }
    with new_folder(_folder(path), holds=MODEL, overwrite=overwrite) as folder:
        write_json(folder / MODEL, document)
        write_arrays(folder / _WEIGHTS, own | shared)
        sums = {name: sha256(folder / name) for name in (MODEL, _WEIGHTS)}
        write_json(folder / _CHECKSUMS, sums)


def load(path: str | Path) -> Method:
    """Read a saved model; nothing in it is ever executed.

    Every part is decoded into its type, and every array is compared with what its method
    declares, before anything computes with them.

    Raises:
        ModelFileError: The folder is not a saved model, is damaged, or of another format.
    """
    path = _folder(path)
    _check_sums(path)
    header = _read(path / MODEL, _Header)
    check_format(f"'{path}' has model", header.format, header.harmonrank, FORMAT)
    try:
        return _restored(path, read_json(path / MODEL, _Document))
    except DependencyError:
        raise
    except HarmonRankError as error:
        raise ModelFileError(
            f"'{path}' cannot be loaded by harmonrank {harmonrank.__version__}: "
            f"{str(error).rstrip('.')}; it was saved by {header.harmonrank}, so use that version "
            "or fit it again."
        ) from error


def checksums(path: str | Path) -> dict[str, str]:
    """Return the checksum of each file of a saved model, as it was saved."""
    return _read(_folder(path) / _CHECKSUMS, dict[str, str])


def _folder(path: Any) -> Path:
    if isinstance(path, str | PathLike):
        return Path(path)
    raise UsageError(f"A saved model is named by the path of its folder. Got {path!r}.")


def _restored(path: Path, document: _Document) -> Method:
    model = method_class(document.method)(**document.config)
    kind: Any = model.config.state
    schema = Schema.from_dict(document.schema)
    # How many codes each context feature has decides how large arrays are.
    M, slots = len(schema.names), ContextEncoder.from_dict(document.fitted.get("encoder")).slots
    sizes = {"M": M, "slots": sum(slots), "features": len(slots)}
    own_sizes = kind.sizes(M, slots) if hasattr(kind, "sizes") else {}
    arrays = read_arrays(
        path / _WEIGHTS,
        declared(Fitted, document.fitted, sizes, _FITTED)
        | declared(kind, document.state, sizes | own_sizes),
    )
    fitted = restored(Fitted, document.fitted, arrays, _FITTED)
    fitted.check(schema)
    if (fitted.kinds is None) != schema.plain:
        raise DataError("'kinds' must be there where objectives are graded or conditional")
    own = {name: array for name, array in arrays.items() if not name.startswith(_FITTED)}
    state = restored(kind, document.state, own)
    if getattr(state, "slots", slots) != slots:
        raise DataError("the method learned other context values than the model has")
    if hasattr(state, "check"):
        state.check(M, slots)
    model = changed(model, schema=schema, fitted=fitted.with_points({}), state=state)
    for name, weights in fitted.points.items():
        model = model.with_point(name, weights)
    return model


def _check_sums(path: Path) -> None:
    if not path.exists():
        raise ModelFileError(f"There is no saved model '{path}'; check its name.")
    missing = [n for n in (MODEL, _WEIGHTS, _CHECKSUMS) if not (path / n).is_file()]
    if missing:
        raise ModelFileError(f"'{path}' is not a saved model: it has no {missing[0]}.")
    expected = _read(path / _CHECKSUMS, dict[str, str])
    for name in (MODEL, _WEIGHTS):
        if expected.get(name) != sha256(path / name):
            raise ModelFileError(
                f"'{path / name}' does not match its checksum: the saved model is damaged; "
                "copy it again or fit it again."
            )


def _read(path: Path, kind: type[T]) -> T:
    try:
        return read_json(path, kind)
    except DataError as error:
        raise ModelFileError(f"The saved model is damaged: {error}") from None


@dataclass(frozen=True)
class PackedModel:
    """The files of a saved model, by name and bytes."""

    files: tuple[tuple[str, bytes], ...]

    def model(self) -> Method:
        """Return the model; a process that unpacks the same one again gets the same object."""
        return _unpacked(self)


def pack(method: Method) -> PackedModel:
    """Return a fitted method as bytes."""
    with TemporaryDirectory(prefix="harmonrank-") as folder:
        path = Path(folder) / "model"
        save(method, path)
        names = sorted(file.name for file in path.iterdir())
        return PackedModel(tuple((name, (path / name).read_bytes()) for name in names))


@lru_cache(maxsize=4)
def _unpacked(packed: PackedModel) -> Method:
    with TemporaryDirectory(prefix="harmonrank-") as folder:
        for name, content in packed.files:
            (Path(folder) / name).write_bytes(content)
        return load(folder)
