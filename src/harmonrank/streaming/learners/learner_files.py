"""Learner files: the folder that a learner is saved in.

It holds a JSON document with a format version and a checksum of every other file, the model as any
saved model, and rows as parquet. All of it is decoded by type, and nothing is executed.
"""

__all__ = ["ARRAYS", "LearnerParts", "read_header", "read_learner", "write_learner"]

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

import harmonrank
from harmonrank.data import Log, Schema
from harmonrank.data.rows.kept_rows import read_rows, write_rows
from harmonrank.fusion import Method, load
from harmonrank.streaming.learners.recipe import LearnerRecipe, LearnerSettings
from harmonrank.support.errors import DataError
from harmonrank.support.storage.arrays import write_arrays
from harmonrank.support.storage.decoding import check_format, decode
from harmonrank.support.storage.digests import file_sums
from harmonrank.support.storage.files import read_json, write_json

FORMAT = 2
ARRAYS = "arrays.safetensors"
"""The file of a learner's own arrays."""

_DOCUMENT, _MODEL = "learner.json", "model"

State = TypeVar("State")


class _Header(msgspec.Struct):
    """What every format has."""

    format: int
    harmonrank: str
    learner: str


class _Document(_Header, forbid_unknown_fields=True):
    method: str
    options: dict[str, Any]
    schema: dict[str, Any]
    settings: LearnerSettings
    state: dict[str, Any]
    files: dict[str, str]


@dataclass(frozen=True)
class LearnerParts(Generic[State]):
    """What was read back of a learner; `rows` by the name that each log was written under."""

    recipe: LearnerRecipe
    state: State
    model: Method | None
    rows: Mapping[str, Log]


def write_learner(
    folder: Path,
    learner: str,
    recipe: LearnerRecipe,
    state: Mapping[str, Any],
    model: Method | None,
    rows: Mapping[str, Log | None],
    arrays: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write a learner into a folder that is not there yet.

    Args:
        folder: Whoever calls gives it its final name only when all is written.
        learner: Which learner it is.
        recipe: What it learns.
        state: What else it knows, as JSON parts.
        model: What it would publish.
        rows: The rows it keeps, each log by a name.
        arrays: What else it has learned.
    """
    folder.mkdir()
    if model is not None:
        model.save(folder / _MODEL)
    for name, log in rows.items():
        if log is not None and log.rows:
            write_rows(folder / f"{name}.parquet", log)
    if arrays is not None:
        write_arrays(folder / ARRAYS, arrays)
    document = {
        "format": FORMAT,
        "harmonrank": harmonrank.__version__,
        "learner": learner,
        "method": recipe.method,
        "options": dict(recipe.options),
        "schema": recipe.schema.to_dict(),
        "settings": asdict(recipe.settings),
        "state": dict(state),
        "files": file_sums(folder, sorted(path.name for path in folder.iterdir())),
    }
    write_json(folder / _DOCUMENT, document)


def read_header(folder: Path) -> str:
    """Return which learner a folder holds."""
    header = read_json(folder / _DOCUMENT, _Header)
    check_format(f"'{folder}' has learner", header.format, header.harmonrank, FORMAT)
    return header.learner


def read_learner(
    folder: Path,
    schema: Schema,
    kind: type[State],
    most: Callable[[LearnerSettings], Mapping[str, int]],
) -> LearnerParts[State]:
    """Read what `write_learner` wrote.

    Args:
        folder: Where it was written.
        schema: What the learner must have learned.
        kind: What the JSON parts of its state are decoded to.
        most: How many rows each log may have, given the settings.

    Raises:
        DataError: It is damaged, or of another schema.
    """
    document = read_json(folder / _DOCUMENT, _Document)
    if Schema.from_dict(document.schema) != schema:
        raise DataError(f"'{folder}' holds a learner of another schema; use the one it began with.")
    _check_files(folder, document.files)
    recipe = LearnerRecipe(document.method, document.options, schema, document.settings)
    bounds = most(document.settings)
    names = [name for name in bounds if f"{name}.parquet" in document.files]
    return LearnerParts(
        recipe,
        decode(document.state, kind, f"The state of '{folder}'"),
        load(folder / _MODEL) if (folder / _MODEL).is_dir() else None,
        {name: read_rows(folder / f"{name}.parquet", schema, bounds[name]) for name in names},
    )


def _check_files(folder: Path, expected: Mapping[str, str]) -> None:
    there = sorted(path.name for path in folder.iterdir() if path.name != _DOCUMENT)
    found = file_sums(folder, there)
    for name in sorted({*found, *expected}):
        if found.get(name) != expected.get(name):
            raise DataError(
                f"'{folder / name}' does not match its checksum: the learner is damaged; go back "
                "to an earlier state, or begin again from the log with `harmonrank backfill`."
            )
