"""Scoring a file: the table again, with the fused score as one more column."""

__all__ = ["score_file", "write_table"]

import gzip
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, cast

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
from harmonrank.data.reading.table_files import TableFiles
from harmonrank.data.reading.table_paths import Paths, file_kind
from harmonrank.data.reading.tables import check_columns, describe, open_table
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.method import Method
from harmonrank.support.errors import UsageError
from harmonrank.support.storage.files import check_output, new_file

# Enough to tell a replaced model, and little beside the scoring of a piece.
_DRIFT_ROWS = 32_768

Fuse = Callable[[pl.DataFrame, int], np.ndarray]
"""Fused scores of rows, and the number of the first one, which errors count from."""


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
    names = files.columns
    context = table_columns(method.schema.context, names)
    check_columns(source, names, [*method.schema.score_columns, *context])
    method.fuser.weights(weights, value)  # refuses what it cannot take before any work
    if column in names:
        raise UsageError(f"{called} has a column '{column}' already; choose another name.")
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
            with new_file(output, overwrite=overwrite) as partial:
                return _stream(files, total, partial, column, fuse, on_rows)
    frame = open_table(source, names, empty=True)
    lows = range(0, max(frame.height, 1), PIECE_ROWS)
    fused = np.concatenate([fuse(frame.slice(low, PIECE_ROWS), low) for low in lows])
    frame = frame.with_columns(pl.Series(column, fused))
    write_table(frame, output, overwrite=overwrite)
    on_rows(frame.height, frame.height)
    return frame.height


def write_table(frame: pl.DataFrame, output: Path, *, overwrite: bool = False) -> None:
    """Write a table as parquet, csv or arrow, by the ending; it appears only when complete."""
    compress = output.name.lower().endswith(".gz")
    with new_file(output, overwrite=overwrite) as partial, writing():
        _write(frame, partial, file_kind(output), compress=compress)


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
    partial: Path,
    column: str,
    fuse: Fuse,
    on_rows: Callable[[int, int], None],
) -> int:
    done = 0
    kept = kept_metadata(files.paths[0])
    # Types are written as they are now; the rest is what others keep with their tables.
    kept.pop("ARROW:schema", None)
    with (
        ParquetWriter(partial, metadata=kept) as writer,
        closing(pieces(files, PIECE_ROWS)) as frames,
    ):
        for frame in frames:
            writer.put(frame.with_columns(pl.Series(column, fuse(frame, done))))
            done += frame.height
            on_rows(done, total)
    return done
