"""Scoring a file: the table again, with the fused score as one more column."""

__all__ = ["score_file"]

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harmonrank.data import read_log
from harmonrank.data.files import new_file
from harmonrank.data.tables import check_columns, column_names, file_kind, open_table
from harmonrank.errors import DataError, UsageError
from harmonrank.methods.base import Method

_CHUNK_ROWS = 262_144


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

    Parquet is read and written in pieces, so memory does not grow with the file.

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
    kind = file_kind(output)
    names = column_names(source)
    check_columns(source, names, [*method.schema.score_columns, *method.schema.context])
    if column in names:
        raise UsageError(f"'{source}' has a column '{column}' already; choose another name.")

    def scored(frame: pl.DataFrame, first_row: int) -> pl.DataFrame:
        log = read_log(frame, method.schema, labels=False, first_row=first_row)
        return frame.with_columns(pl.Series(column, method.score(log, weights=weights)))

    with new_file(output, overwrite=overwrite) as partial:
        if file_kind(source) == "parquet" and kind == "parquet":
            return _stream(source, partial, scored, on_rows)
        frame = scored(open_table(source, names), 0)
        if kind == "parquet":
            frame.write_parquet(partial)
        elif kind == "csv":
            frame.write_csv(partial)
        else:
            frame.write_ipc(partial)
        on_rows(frame.height, frame.height)
        return frame.height


def _stream(
    source: Path,
    partial: Path,
    scored: Callable[[pl.DataFrame, int], pl.DataFrame],
    on_rows: Callable[[int, int], None],
) -> int:
    file = pq.ParquetFile(source)
    total, done = file.metadata.num_rows, 0
    if total == 0:
        raise DataError(f"'{source}' has no rows; expected at least one.")
    writer: pq.ParquetWriter | None = None
    try:
        for frame in _pieces(file, source):
            table = scored(frame, done).to_arrow()
            writer = writer or pq.ParquetWriter(partial, table.schema)
            writer.write_table(table)
            done += frame.height
            on_rows(done, total)
    finally:
        if writer is not None:
            writer.close()
    return done


def _pieces(file: pq.ParquetFile, source: Path) -> Iterator[pl.DataFrame]:
    try:
        for batch in file.iter_batches(batch_size=_CHUNK_ROWS):
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            yield frame
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"'{source}' cannot be read as parquet: {error}; it may be truncated, "
            "so write it again."
        ) from None
