"""Parquet in pieces: a file larger than memory is read, and written, a few rows at a time."""

__all__ = [
    "PIECE_ROWS",
    "ParquetWriter",
    "ahead",
    "count_rows",
    "kept_metadata",
    "pieces",
    "read_piece",
    "writing",
]

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Full, Queue
from typing import Any, Literal, Self, TypeVar

import polars as pl
from polars.io.plugins import register_io_source
from polars.selectors import by_name

from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.stores import StoreFile
from harmonrank.data.reading.table_files import TableFiles, reading, scanned
from harmonrank.data.reading.table_paths import TableFile
from harmonrank.support.errors import UsageError

Job = TypeVar("Job")
Made = TypeVar("Made")

PIECE_ROWS = 262_144
"""Rows of a piece, in which files are read and written; each piece becomes a row group."""

_READ_BYTES = 48_000_000
_MOST_AT_ONCE = 4


def count_rows(path: TableFile | TableFiles) -> int:
    """Return how many rows a parquet file, or a table of several, has."""
    if isinstance(path, TableFiles):
        return sum(map(count_rows, path.paths))
    require_polars_threads(f"Reading '{path}'")
    with reading(path, "parquet"):
        return int(scanned(path).select(pl.len()).collect().item())


def kept_metadata(path: TableFile) -> dict[str, str]:
    """Return the keys and values that are kept with a parquet file."""
    with reading(path, "parquet"):
        return pl.read_parquet_metadata(path.url if isinstance(path, StoreFile) else path)


def read_piece(
    path: TableFile, first: int, rows: int, columns: Sequence[str] | None = None
) -> pl.DataFrame:
    """Return some rows of a parquet file; only the pages that hold them are decoded."""
    with reading(path, "parquet"):
        lazy = scanned(path)
        names = lazy.collect_schema().names() if columns is None else columns
        if isinstance(path, StoreFile):
            return path.read(first, rows, names)
        return lazy.select(by_name(*names)).slice(first, rows).collect()


def pieces(
    path: TableFile | TableFiles, rows: int | None = None
) -> Generator[pl.DataFrame, None, None]:
    """Yield a parquet table in pieces, each decoded while the one before it is worked on.

    A piece is of one file; where a table has several files, all pieces have the same types.
    """
    rows = rows or PIECE_ROWS
    files = path.paths if isinstance(path, TableFiles) else (path,)
    types: Any = path.types() if isinstance(path, TableFiles) and len(files) > 1 else None
    at_once = 1
    reads = _reads(files, rows, lambda: at_once)
    for frame in ahead(lambda read: read_piece(*read), reads):
        at_once = _at_once(frame, rows)
        for low in range(0, frame.height, rows):
            piece = frame.slice(low, rows)
            yield piece if types is None else piece.select(by_name(*types)).cast(types)


def ahead(work: Callable[[Job], Made], jobs: Iterable[Job]) -> Iterator[Made]:
    """Yield what is made of each job, made while what was made before it is worked on."""
    with ThreadPoolExecutor(1) as thread:
        coming: Future[Made] | None = None
        for job in jobs:
            ready, coming = coming, _begun(thread, work, job)
            if ready is not None:
                yield ready.result()
        if coming is not None:
            yield coming.result()


def _reads(
    files: Sequence[TableFile], rows: int, at_once: Callable[[], int]
) -> Iterator[tuple[TableFile, int, int]]:
    """Yield what is read in one go: a file, its first row there, and at most how many."""
    for file in files:  # rows are counted when its turn comes; there may be thousands of files
        first, total = 0, count_rows(file)
        while first < total:
            many = rows * at_once()
            yield file, first, many
            first += many


def _at_once(frame: pl.DataFrame, rows: int) -> int:
    """Return how many pieces to read in one go.

    A row group that two reads share is decoded twice, so fewer and larger ones are faster, as far
    as they take little memory.
    """
    size = frame.estimated_size() / max(frame.height, 1) * rows
    return max(1, min(_MOST_AT_ONCE, int(_READ_BYTES / max(size, 1))))


def _begun(thread: ThreadPoolExecutor, work: Callable[..., Made], *given: Any) -> Future[Made]:
    try:
        return thread.submit(work, *given)
    except RuntimeError:
        raise UsageError(
            "Parquet in pieces needs threads, which cannot be had once the main thread has ended; "
            "let it wait for the others."
        ) from None


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
            self._written = _begun(self._thread, self._write, piece.schema)
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
