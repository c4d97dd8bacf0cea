"""Scoring a file: the table again, with the fused score as one more column."""

__all__ = ["score_file"]

import gzip
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harmonrank.data import read_log
from harmonrank.data.files import check_output, new_file
from harmonrank.data.tables import check_columns, column_names, file_kind, open_table
from harmonrank.errors import DataError, UsageError
from harmonrank.methods.base import Method

_CHUNK_ROWS = 262_144

Fuse = Callable[[pl.DataFrame, int], np.ndarray]
"""Fused scores of rows, and the number of the first one, which errors count from."""


def score_file(
    method: Method,
    source: str | Path,
    output: str | Path,
    *,
    column: str = "fused",
    weights: Mapping[str, float] | None = None,
    overwrite: bool = False,
    on_rows: Callable[[int, int], None] = lambda *_: None,
) -> int:
    """Write the rows of `source`, in order, with the fused score; return their number.

    Parquet is read and written in pieces, so memory does not grow with the file. Columns that
    the model does not read pass through as they are.

    Args:
        method: A fitted method.
        source: parquet, csv or arrow.
        output: parquet, csv or arrow, by its ending.
        column: Name of the new column.
        weights: Other objective weights.
        overwrite: Replace `output` if it exists.
        on_rows: Called with the rows done and the rows in all.
    """
    source, output = Path(source), Path(output)
    kind, names = file_kind(output), column_names(source)
    check_columns(source, names, [*method.schema.score_columns, *method.schema.context])
    if column in names:
        raise UsageError(f"'{source}' has a column '{column}' already; choose another name.")
    check_output(output, overwrite=overwrite)

    def fuse(frame: pl.DataFrame, first_row: int) -> np.ndarray:
        log = read_log(frame, method.schema, labels=False, first_row=first_row, name=f"'{source}'")
        return method.score(log, weights=weights)

    if file_kind(source) == "parquet" and kind == "parquet":
        with new_file(output, overwrite=overwrite) as partial:
            return _stream(source, partial, column, fuse, on_rows)
    frame = open_table(source, names)
    frame = frame.with_columns(pl.Series(column, fuse(frame, 0)))
    with new_file(output, overwrite=overwrite) as partial:
        _write(frame, partial, kind, compress=output.name.lower().endswith(".gz"))
    on_rows(frame.height, frame.height)
    return frame.height


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
    source: Path, partial: Path, column: str, fuse: Fuse, on_rows: Callable[[int, int], None]
) -> int:
    with _reading(source):
        file = pq.ParquetFile(source)
    total, done = file.metadata.num_rows, 0
    if total == 0:
        raise DataError(f"'{source}' has no rows; expected at least one.")
    schema = file.schema_arrow.append(pa.field(column, pa.float64()))
    with file, pq.ParquetWriter(partial, schema) as writer:
        for batch in _pieces(file, source):
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            fused = pa.array(fuse(frame, done), type=pa.float64())
            writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, fused], schema=schema))
            done += batch.num_rows
            on_rows(done, total)
    return done


def _pieces(file: pq.ParquetFile, source: Path) -> Iterator[pa.RecordBatch]:
    batches = file.iter_batches(batch_size=_CHUNK_ROWS)
    while True:
        with _reading(source):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextmanager
def _reading(source: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(
            f"'{source}' cannot be read as parquet: {reason}; it may be truncated or damaged, "
            "so write it again."
        ) from None
