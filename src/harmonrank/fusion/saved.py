"""Saved models: a folder of safetensors and JSON with a format version and checksums."""

__all__ = ["FORMAT", "MODEL", "checksums", "load", "save"]

import dataclasses
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

import harmonrank
from harmonrank.data import Schema
from harmonrank.fusion.aligned import MapsForm
from harmonrank.fusion.base import Method
from harmonrank.fusion.catalogue import method_class
from harmonrank.fusion.kinds import KindsForm
from harmonrank.fusion.points import PointsForm
from harmonrank.fusion.state import ReferenceState
from harmonrank.support.errors import (
    DataError,
    DependencyError,
    HarmonRankError,
    ModelFileError,
    UsageError,
)
from harmonrank.support.storage.arrays import read_arrays, write_arrays
from harmonrank.support.storage.decoding import check_format, decode
from harmonrank.support.storage.files import new_folder, read_json, sha256, write_json

FORMAT = 3
MODEL = "model.json"
"""The file that tells a saved model from any other folder."""

T = TypeVar("T")

_WEIGHTS, _CHECKSUMS = "weights.safetensors", "checksums.json"


class _Header(msgspec.Struct):
    """What every format has."""

    format: int
    harmonrank: str


class _Document(_Header, forbid_unknown_fields=True):
    """All that a saved model holds besides arrays."""

    method: str
    config: dict[str, Any]
    schema: dict[str, Any]
    prevalence: list[Annotated[float, Meta(gt=0, lt=1)]]
    reference: ReferenceState
    state: dict[str, Any]
    points: PointsForm = msgspec.field(default_factory=dict)
    maps: MapsForm = msgspec.field(default_factory=list)
    kinds: KindsForm | None = None


def save(method: Method, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted method; the folder appears when it is complete."""
    schema = method.schema  # refuses a method that is not fitted
    parts, arrays = method._state()
    reference, reference_arrays = method._reference_state()
    maps, map_arrays = method._map_state()
    document = {
        "format": FORMAT,
        "harmonrank": harmonrank.__version__,
        "method": method.name,
        "config": dataclasses.asdict(method.config),
        "schema": schema.to_dict(),
        "prevalence": method.prevalence.tolist(),
        "reference": reference,
        "state": parts,
        # Left out where there are none, so that such a model is the same folder as before.
        **({"points": method.points} if method.points else {}),
        **({"maps": maps} if maps else {}),
        **({"kinds": method._kinds.to_dict()} if method._kinds is not None else {}),
    }
    with new_folder(_folder(path), holds=MODEL, overwrite=overwrite) as folder:
        write_json(folder / MODEL, document)
        write_arrays(folder / _WEIGHTS, arrays | reference_arrays | map_arrays)
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
    method = method_class(document.method)(**document.config)
    schema = method._schema = Schema.from_dict(document.schema)
    method.prevalence = np.array(document.prevalence, dtype=np.float64)
    if len(document.prevalence) != len(schema.names):
        raise DataError(
            f"`prevalence` must have one number for each of {', '.join(schema.names)}, "
            f"got {len(document.prevalence)}"
        )
    if (document.kinds is None) != schema.plain:
        raise DataError("`kinds` must be there where objectives are graded or conditional")
    method._kinds = None if document.kinds is None else document.kinds.kinds(schema)
    for name, weights in document.points.items():
        method = method.with_point(name, weights)
    state: Any = decode(document.state, method.State, "`state`")
    declared = {**method._declare(state), **method._declare_reference(document.reference)}
    declared |= method._declare_maps(document.maps)
    arrays = read_arrays(path / _WEIGHTS, declared)
    method._restore_reference(document.reference, arrays)
    method._restore_maps(document.maps, arrays)
    method._restore(state, arrays)
    return method


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
