"""Scoring many files on an engine: one output file per input file, each complete or not there."""

__all__ = ["SCORED", "score_files"]

import hashlib
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from harmonrank.data.clock import table_columns
from harmonrank.data.reading.parquet import count_rows
from harmonrank.data.reading.stores import StoreFile
from harmonrank.data.reading.table_files import TableFiles
from harmonrank.data.reading.table_paths import Paths, TableFile
from harmonrank.data.reading.tables import check_columns, describe
from harmonrank.engine import Engine, in_order
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.method import Method
from harmonrank.fusion.scoring.packed import PackedModel, pack
from harmonrank.fusion.scoring.scoring import score_file
from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.storage.files import new_file, resumable_folder, write_json

SCORED = "scored.json"
"""The file that tells scored tables from any other folder, and says how many rows each has."""


class _Done(NamedTuple):
    """What a worker tells of a file."""

    name: str
    rows: int
    kept: bool
    drift: Drift | None


def score_files(
    engine: Engine,
    method: Method,
    source: Paths,
    output: str | Path,
    *,
    column: str = "fused",
    weights: Mapping[str, float] | None = None,
    value: Mapping[str, float] | None = None,
    overwrite: bool = False,
    on_file: Callable[[int, int], None] = lambda *_: None,
    on_drift: Callable[[Drift], None] | None = None,
) -> int:
    """Write each parquet file of `source` with the fused score into a folder; return all rows.

    A file gets its name in a hidden folder when it is complete, and the folder gets its own when
    all are. The same call goes on where an earlier one was cut short: files that are there stay.

    Args:
        engine: Where files are scored; each is one call.
        method: A fitted method.
        source: Parquet: a file, a folder, a glob or a list of them.
        output: The folder. Files keep their names below the folder that holds them all.
        column: Name of the new column.
        weights: Other objective weights.
        value: What an event of each objective is worth, in place of weights.
        overwrite: Replace an earlier folder of scored files.
        on_file: Called with the files done and the files in all.
        on_drift: Called with the drift of the first piece of the first file, if it was scored.
    """
    files = TableFiles.of(source)
    if files.kind != "parquet":
        raise UsageError(
            f"Scoring by workers takes parquet files. Got {files.kind} ({describe(source)}); "
            "convert it, or leave --engine ray out."
        )
    context = table_columns(method.schema.context, files.columns)
    check_columns(source, files.columns, [*method.schema.score_columns, *context])
    method.fuser.weights(weights, value)  # refuses what it cannot take before any work
    if column in files.columns:
        raise UsageError(
            f"{describe(source)} has a column '{column}' already; choose another name."
        )
    names = _names(files.paths)
    asked: dict[str, Any] = {"column": column, "weights": weights, "value": value}
    packed = pack(method)
    key = {**asked, "model": _identity(packed), "files": _facts(files.paths)}
    counts: dict[str, int] = {}
    with resumable_folder(output, key, holds=SCORED, overwrite=overwrite) as folder:
        sources = [path.url if isinstance(path, StoreFile) else path for path in files.paths]
        jobs = [(path, folder / name, name) for path, name in zip(sources, names, strict=True)]
        work = partial(_score_one, first=names[0], **asked)
        for done in in_order(engine, work, jobs, packed):
            counts[done.name] = done.rows
            if done.drift is not None and on_drift is not None:
                on_drift(done.drift)
            on_file(len(counts), len(names))
        with new_file(folder / SCORED, overwrite=True) as partial_file:
            write_json(partial_file, {"column": column, "rows": counts})
    return sum(counts.values())


def _score_one(
    job: tuple[str | Path, Path, str], packed: PackedModel, *, first: str, column: str, **asked: Any
) -> _Done:
    """Score a file, unless an earlier run has done so."""
    path, target, name = job
    if target.is_file():
        return _Done(name, count_rows(target), True, None)
    found: list[Drift] = []
    hear = found.append if name == first else None
    rows = score_file(packed.model(), path, target, column=column, on_drift=hear, **asked)
    return _Done(name, rows, False, found[0] if found else None)


def _names(paths: tuple[TableFile, ...]) -> list[str]:
    """Return each file's name below the folder that holds them all."""
    whole = [_place(path) for path in paths]
    root = Path(os.path.commonpath([path.parent for path in whole]))
    return [path.relative_to(root).as_posix() for path in whole]


def _place(path: TableFile) -> Path:
    """Return where a file is, one of a store in a folder with the name of its store."""
    if isinstance(path, StoreFile):
        return Path(f"/{str(path).partition('://')[2].lstrip('/')}")
    return path.absolute()


def _facts(paths: tuple[TableFile, ...]) -> list[tuple[str, int, int]]:
    """Return what changes when a file is written again."""
    try:
        return [_fact(path) for path in paths]
    except OSError as error:
        raise DataError(f"'{error.filename}' cannot be read: {error.strerror}.") from None


def _fact(path: TableFile) -> tuple[str, int, int]:
    if isinstance(path, StoreFile):
        return str(path), count_rows(path), 0
    stat = path.stat()
    return str(path.absolute()), stat.st_size, stat.st_mtime_ns


def _identity(packed: PackedModel) -> str:
    """Return a digest of all that decides a model's scores."""
    whole = hashlib.sha256()
    for name, content in packed.files:
        whole.update(f"{name} {len(content)} ".encode())
        whole.update(content)
    return whole.hexdigest()
