"""Saved models: a folder of safetensors and JSON with a format version and checksums."""

__all__ = ["FORMAT", "MODEL", "load", "save"]

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

import harmonrank
from harmonrank.data import Schema
from harmonrank.data.files import new_folder, read_json, sha256, write_json
from harmonrank.errors import DataError, ModelFileError
from harmonrank.methods.base import Method
from harmonrank.methods.catalogue import method_class

FORMAT = 1
MODEL = "model.json"
"""The file that tells a saved model from any other folder."""

_WEIGHTS, _CHECKSUMS = "weights.safetensors", "checksums.json"
_BROKEN = (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)


def save(method: Method, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fitted method; the folder appears when it is complete."""
    schema = method.schema  # refuses a method that is not fitted
    parts, arrays = method._state()
    document = {
        "format": FORMAT,
        "harmonrank": harmonrank.__version__,
        "method": method.name,
        "config": dataclasses.asdict(method.config),
        "schema": schema.to_dict(),
        "prevalence": method.prevalence.tolist(),
        "state": parts,
    }
    with new_folder(path, holds=MODEL, overwrite=overwrite) as folder:
        write_json(folder / MODEL, document)
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        save_file(contiguous, folder / _WEIGHTS)
        sums = {name: sha256(folder / name) for name in (MODEL, _WEIGHTS)}
        write_json(folder / _CHECKSUMS, sums)


def load(path: str | Path) -> Method:
    """Read a saved model; nothing in it is ever executed.

    Raises:
        ModelFileError: The folder is not a saved model, is damaged, or of a newer format.
    """
    path = Path(path)
    _check_sums(path)
    document = _read(path / MODEL)
    found = document.get("format")
    if not isinstance(found, int) or found > FORMAT:
        raise ModelFileError(
            f"'{path}' has model format {found}, written by harmonrank "
            f"{document.get('harmonrank')}; harmonrank {harmonrank.__version__} reads formats "
            f"up to {FORMAT}, so update it."
        )
    try:
        arrays = load_file(path / _WEIGHTS)
        method = method_class(document["method"])(**document["config"])
        method._schema = Schema.from_dict(document["schema"])
        method.prevalence = np.array(document["prevalence"], dtype=np.float64)
        method._restore(document["state"], arrays)
    except (*_BROKEN, SafetensorError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise ModelFileError(
            f"'{path}' cannot be loaded by harmonrank {harmonrank.__version__}: {reason}; it was "
            f"saved by {document.get('harmonrank')}, so use that version or fit it again."
        ) from error
    return method


def _check_sums(path: Path) -> None:
    if not path.exists():
        raise ModelFileError(f"There is no saved model '{path}'; check its name.")
    missing = [n for n in (MODEL, _WEIGHTS, _CHECKSUMS) if not (path / n).is_file()]
    if missing:
        raise ModelFileError(f"'{path}' is not a saved model: it has no {missing[0]}.")
    expected = _read(path / _CHECKSUMS)
    for name in (MODEL, _WEIGHTS):
        if expected.get(name) != sha256(path / name):
            raise ModelFileError(
                f"'{path / name}' does not match its checksum: the saved model is damaged; "
                "copy it again or fit it again."
            )


def _read(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path)
    except DataError as error:
        raise ModelFileError(f"The saved model is damaged: {error}") from None
    if not isinstance(document, dict):
        raise ModelFileError(f"The saved model is damaged: '{path}' holds no parts.")
    return document
