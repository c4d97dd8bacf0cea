"""Parquet in pieces: a file larger than memory is read, and written, a few rows at a time."""

__all__ = ["PIECE_ROWS", "ParquetWriter", "count_rows", "pieces", "read_piece", "writing"]

from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Full, Queue
from typing import Literal, Self

import polars as pl
from polars.io.plugins import register_io_source
from polars.selectors import by_name

from harmonrank.data.forks import require_polars_threads
from harmonrank.data.tables import reading

PIECE_ROWS = 262_144
"""Files are read and written in pieces of so many rows; one is a row group of what is written."""


def count_rows(path: Path) -> int:
    """Return how many rows a parquet file has."""
    require_polars_threads(f"Reading '{path}'")
    with reading(path, "parquet"):
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def read_piece(
    path: Path, first: int, rows: int, columns: Sequence[str] | None = None
) -> pl.DataFrame:
    """Return some rows of a parquet file; only the pages that hold them are decoded."""
    with reading(path, "parquet"):
        lazy = pl.scan_parquet(path)
        if columns is not None:
            lazy = lazy.select(by_name(*columns))
        return lazy.slice(first, rows).collect()


def pieces(path: Path, rows: int | None = None) -> Generator[pl.DataFrame, None, None]:
    """Yield a parquet file in pieces, each decoded while the one before it is worked on."""
    rows = rows or PIECE_ROWS
    starts = range(0, count_rows(path), rows)
    with ThreadPoolExecutor(1) as thread:
        coming: Future[pl.DataFrame] | None = None
        for first in starts:
            piece = read_piece(path, first, rows) if coming is None else coming.result()
            later = first + rows
            coming = thread.submit(read_piece, path, later, rows) if later in starts else None
            yield piece


@contextmanager
def writing() -> Iterator[None]:
    """Turn what Polars says when it cannot write a table into an error of the system.

    Raises:
        OSError: The disk is full, or gone.
    """
    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise OSError(str(error).splitlines()[0].rstrip(".")) from error


class ParquetWriter:
    """Writes pieces to a parquet file, each one encoded while the next one is made.

    What is in memory does not grow with the file. The same pieces give the same bytes. Without
    any piece there is no file.

    Args:
        path: The file to write.
        compression: How pages are compressed.
        metadata: Keys and values to keep with the file.
    """

    def __init__(
        self,
        path: Path,
        *,
        compression: Literal["snappy", "zstd", "uncompressed"] = "snappy",
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self._path, self._compression, self._metadata = path, compression, dict(metadata or {})
        self._pieces: Queue[pl.DataFrame | None] = Queue(1)
        self._thread = ThreadPoolExecutor(1)
        self._written: Future[None] | None = None
        self._failed = False

    def __enter__(self) -> Self:
        return self

    def put(self, piece: pl.DataFrame) -> None:
        """Add rows to the file; all pieces have the columns and types of the first.

        Raises:
            OSError: The file cannot be written.
        """
        if self._written is None:
            require_polars_threads(f"Writing '{self._path}'")
            self._written = self._thread.submit(self._write, piece.schema)
        self._hand_over(piece)

    def _hand_over(self, piece: pl.DataFrame | None) -> None:
        assert self._written is not None, "there is a writer once there is a piece"
        while True:
            try:
                self._pieces.put(piece, timeout=0.1)
                return
            except Full:
                # Nobody takes it any more if writing has failed; that is the error to tell.
                if self._written.done():
                    self._written.result()

    def _write(self, schema: pl.Schema) -> None:
        lazy = register_io_source(lambda *_: self._taken(), schema=schema, validate_schema=True)
        with writing():
            lazy.sink_parquet(
                self._path,
                compression=self._compression,
                row_group_size=PIECE_ROWS,
                metadata=self._metadata,
                engine="streaming",
            )

    def _taken(self) -> Iterator[pl.DataFrame]:
        while (piece := self._pieces.get()) is not None:
            yield piece
        if self._failed:
            raise OSError("the pieces ended early")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._failed = kind is not None
        try:
            if self._written is not None:
                self._hand_over(None)
                self._written.result()
        except OSError:
            # The error that ended the pieces is the one to tell.
            if kind is None:
                raise
        finally:
            self._thread.shutdown()
