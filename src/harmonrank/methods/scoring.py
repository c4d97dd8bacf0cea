"""Scoring a file: the table again, with the fused score as one more column."""

__all__ = ["score_file"]

import gzip
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Self, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harmonrank.data import read_log
from harmonrank.data.files import check_output, new_file
from harmonrank.data.tables import check_columns, column_names, file_kind, open_table
from harmonrank.errors import DataError, OutputError, UsageError
from harmonrank.methods.base import Method
from harmonrank.methods.drift import Drift

PIECE_ROWS = 262_144
"""Files are scored in pieces of so many rows."""

# Enough to tell a replaced model, and little beside the scoring of a piece.
_DRIFT_ROWS = 32_768
# Columns are read this far ahead; without a bound, a whole row group is held in memory.
_READ_BYTES = 1 << 20

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
    on_drift: Callable[[Drift], None] | None = None,
) -> int:
    """Write the rows of `source`, in order, with the fused score; return their number.

    Parquet is read and written in pieces, so memory does not grow with the file, and one piece is
    decoded, one scored and one encoded at the same time. Columns that the model does not read
    pass through as they are.

    Args:
        method: A fitted method.
        source: parquet, csv or arrow.
        output: parquet, csv or arrow, by its ending.
        column: Name of the new column.
        weights: Other objective weights.
        overwrite: Replace `output` if it exists.
        on_rows: Called with the rows done and the rows in all.
        on_drift: Called with the drift of the first piece; it changes no score.
    """
    source, output = Path(source), Path(output)
    kind, names = file_kind(output), column_names(source)
    check_columns(source, names, [*method.schema.score_columns, *method.schema.context])
    if column in names:
        raise UsageError(f"'{source}' has a column '{column}' already; choose another name.")
    check_output(output, overwrite=overwrite)

    def fuse(frame: pl.DataFrame, first_row: int) -> np.ndarray:
        log = read_log(frame, method.schema, labels=False, first_row=first_row, name=f"'{source}'")
        if on_drift is not None and first_row == 0:
            on_drift(method.drift(log.sampled(_DRIFT_ROWS)))
        return method.score(log, weights=weights)

    if file_kind(source) == "parquet" and kind == "parquet":
        with new_file(output, overwrite=overwrite) as partial:
            return _stream(source, partial, column, fuse, on_rows)
    frame = open_table(source, names)
    lows = range(0, max(frame.height, 1), PIECE_ROWS)
    fused = np.concatenate([fuse(frame.slice(low, PIECE_ROWS), low) for low in lows])
    frame = frame.with_columns(pl.Series(column, fused))
    with new_file(output, overwrite=overwrite) as partial:
        _write(frame, partial, kind, compress=output.name.lower().endswith(".gz"))
    on_rows(frame.height, frame.height)
    return frame.height


def _write(frame: pl.DataFrame, path: Path, kind: str, *, compress: bool) -> None:
    try:
        _write_as(frame, path, kind, compress=compress)
    except pl.exceptions.PolarsError as error:
        raise OutputError(f"'{path}' cannot be written: {str(error).rstrip('.')}.") from None


def _write_as(frame: pl.DataFrame, path: Path, kind: str, *, compress: bool) -> None:
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
        file = pq.ParquetFile(source, buffer_size=_READ_BYTES, pre_buffer=False)
    total, done = file.metadata.num_rows, 0
    if total == 0:
        raise DataError(f"'{source}' has no rows; expected at least one.")
    schema = file.schema_arrow.append(pa.field(column, pa.float64()))
    with (
        file,
        pq.ParquetWriter(partial, schema, use_dictionary=_repetitive(schema)) as writer,
        _Writing(writer, schema) as writing,
        # Ends before the file is closed, even when scoring fails.
        closing(_ahead(file, source)) as pieces,
    ):
        for batch in pieces:
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            writing.put(batch, fuse(frame, done))
            done += batch.num_rows
            on_rows(done, total)
    return done


def _repetitive(schema: pa.Schema) -> list[str]:
    """Return the columns worth a dictionary: fractions hardly ever come twice."""
    return [field.name for field in schema if not pa.types.is_floating(field.type)]


def _ahead(file: pq.ParquetFile, source: Path) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows in pieces, each decoded while the one before it is worked on."""
    batches = file.iter_batches(batch_size=PIECE_ROWS)

    def decode() -> pa.RecordBatch | None:
        with _reading(source):
            return next(batches, None)

    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(decode)
        while (batch := coming.result()) is not None:
            coming = thread.submit(decode)
            yield batch


class _Writing:
    """Encodes and writes one piece while the next one is scored."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema
        self._thread = ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def put(self, batch: pa.RecordBatch, fused: np.ndarray) -> None:
        columns = [*batch.columns, pa.array(fused, type=pa.float64())]
        whole = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._wait()
        self._last = self._thread.submit(self._writer.write_batch, whole)

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._wait()
        finally:
            self._thread.shutdown()


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
