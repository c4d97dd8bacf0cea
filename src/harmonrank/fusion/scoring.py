"""Scoring files: the table again, with the fused score as one more column.

On an engine one output file is written per input file, each complete or not there.
"""

__all__ = ["SCORED", "score_file", "score_files", "warm", "write_table"]

import gzip
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import IO, Any, NamedTuple, cast

import numpy as np
import polars as pl

from harmonrank.data import read_log
from harmonrank.data.clock import table_columns
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.parquet import (
    PIECE_ROWS,
    ParquetWriter,
    count_rows,
    kept_metadata,
    pieces,
    writing,
)
from harmonrank.data.reading.stores import StoreFile
from harmonrank.data.reading.table_files import TableFiles
from harmonrank.data.reading.table_paths import Paths, TableFile, file_kind
from harmonrank.data.reading.tables import check_columns, describe, open_table
from harmonrank.engine import Engine, in_order
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.method import Method
from harmonrank.fusion.saved import PackedModel, pack
from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.storage.files import check_output, new_file, resumable_folder, write_json

# Enough to tell a replaced model, and little beside the scoring of a piece.
_DRIFT_ROWS = 32_768

Fuse = Callable[[pl.DataFrame, int], np.ndarray]
"""Fused scores of rows, and the number of the first one, which errors count from."""

SCORED = "scored.json"
"""The file that tells scored tables from any other folder, and says how many rows each has."""


def score_file(
    method: Method,
    source: Paths,
    output: str | Path,
    *,
    column: str = "fused",
    weights: Mapping[str, float] | None = None,
    value: Mapping[str, float] | None = None,
    overwrite: bool = False,
    on_rows: Callable[[int, int], None] = lambda *_: None,
    on_drift: Callable[[Drift], None] | None = None,
) -> int:
    """Write the rows of `source`, in order, with the fused score; return their number.

    Parquet is read and written in pieces, so memory does not grow with the file, and one piece is
    decoded, one scored and one encoded at the same time. Columns that the model does not read
    pass through as they are. A table without rows gives one without rows.

    Args:
        method: A fitted method.
        source: parquet, csv or arrow: a file, a folder, a glob or a list of them.
        output: parquet, csv or arrow, by its ending.
        column: Name of the new column.
        weights: Other objective weights.
        value: What an event of each objective is worth, in place of weights.
        overwrite: Replace `output` if it exists.
        on_rows: Called with the rows done and the rows in all.
        on_drift: Called with the drift of the first piece, if it has rows; it changes no score.
    """
    called = describe(source)
    require_polars_threads(f"Scoring {called}")
    output = Path(output)
    kind, files = file_kind(output), TableFiles.of(source)
    _check_before(method, source, files.columns, column)
    method.fuser.weights(weights, value)  # refuses what it cannot take before any work
    check_output(output, overwrite=overwrite)

    def fuse(frame: pl.DataFrame, first_row: int) -> np.ndarray:
        log = read_log(
            frame, method.schema, labels=False, first_row=first_row, name=called, empty=True
        )
        if on_drift is not None and first_row == 0 and log.rows:
            on_drift(method.drift(log.sampled(_DRIFT_ROWS)))
        return method.score(log, weights=weights, value=value)

    if files.kind == "parquet" and kind == "parquet":
        total = count_rows(files)
        if total:
            with new_file(output, overwrite=overwrite) as unfinished:
                return _stream(files, total, unfinished, column, fuse, on_rows)
    frame = open_table(source, files.columns, empty=True)
    lows = range(0, max(frame.height, 1), PIECE_ROWS)
    fused = np.concatenate([fuse(frame.slice(low, PIECE_ROWS), low) for low in lows])
    frame = frame.with_columns(pl.Series(column, fused))
    write_table(frame, output, overwrite=overwrite)
    on_rows(frame.height, frame.height)
    return frame.height


def _check_before(method: Method, source: Paths, names: Sequence[str], column: str) -> None:
    """Refuse a table that lacks what scores depend on, or has the new column already."""
    context = table_columns(method.schema.context, names)
    check_columns(source, names, [*method.schema.score_columns, *context])
    if column in names:
        raise UsageError(
            f"{describe(source)} has a column '{column}' already; choose another name."
        )


def write_table(frame: pl.DataFrame, output: Path, *, overwrite: bool = False) -> None:
    """Write a table as parquet, csv or arrow, by the ending; it appears only when complete."""
    compress = output.name.lower().endswith(".gz")
    with new_file(output, overwrite=overwrite) as unfinished, writing():
        _write(frame, unfinished, file_kind(output), compress=compress)


def _write(frame: pl.DataFrame, path: Path, kind: str, *, compress: bool) -> None:
    if kind == "parquet":
        frame.write_parquet(path)
    elif kind == "arrow":
        frame.write_ipc(path)
    elif compress:
        with gzip.open(path, "wb", compresslevel=6) as stream:
            frame.write_csv(cast(IO[bytes], stream))
    else:
        frame.write_csv(path)


def _stream(
    files: TableFiles,
    total: int,
    unfinished: Path,
    column: str,
    fuse: Fuse,
    on_rows: Callable[[int, int], None],
) -> int:
    done = 0
    kept = kept_metadata(files.paths[0])
    # Types are written as they are now; the rest is what others keep with their tables.
    kept.pop("ARROW:schema", None)
    with (
        ParquetWriter(unfinished, metadata=kept) as writer,
        closing(pieces(files, PIECE_ROWS)) as frames,
    ):
        for frame in frames:
            writer.put(frame.with_columns(pl.Series(column, fuse(frame, done))))
            done += frame.height
            on_rows(done, total)
    return done


def warm(method: Method) -> float:
    """Score a row of each kind, so that all kernels are compiled and kept; return the seconds.

    A process that loads the model later finds them on disk, even where it cannot write.
    """
    begun, schema = perf_counter(), method.schema
    context = dict.fromkeys(schema.context)
    nothing = [0.5] if schema.missing == "error" else [0.5, np.nan]
    for kind, value in product((np.float32, np.float64), nothing):
        scores = np.full((1, len(schema.names)), value, kind)
        table = pl.DataFrame(scores, schema=list(schema.score_columns), orient="row")
        method.score(table.with_columns(pl.lit(None).alias(name) for name in context))
        method.score_request(scores, context)
    return perf_counter() - begun


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
    _check_before(method, source, files.columns, column)
    method.fuser.weights(weights, value)  # refuses what it cannot take before any work
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
        with new_file(folder / SCORED, overwrite=True) as unfinished:
            write_json(unfinished, {"column": column, "rows": counts})
    return sum(counts.values())


def _score_one(
    job: tuple[str | Path, Path, str], packed: PackedModel, *, first: str, column: str, **asked: Any
) -> _Done:
    """Score a file, unless an earlier run has done so."""
    path, target, name = job
    if target.is_file():
        return _Done(name, count_rows(target), True, None)
    drifts: list[Drift] = []
    hear = drifts.append if name == first else None
    rows = score_file(packed.model(), path, target, column=column, on_drift=hear, **asked)
    return _Done(name, rows, False, drifts[0] if drifts else None)


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
