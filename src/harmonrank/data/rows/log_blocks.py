"""Blocks of a log: in memory, or of a parquet table as checked logs that are read when needed."""

__all__ = ["FileBlocks", "LogBlocks", "MemoryBlocks", "RowChoice", "log_blocks"]

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
import polars as pl

from harmonrank.data.clock import table_columns
from harmonrank.data.log import Log
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.logs import read_log
from harmonrank.data.reading.parquet import count_rows, read_piece
from harmonrank.data.reading.table_files import TableFiles
from harmonrank.data.reading.table_paths import Paths, is_paths
from harmonrank.data.reading.tables import Source, check_columns, describe
from harmonrank.data.rows.blocks import BLOCK_ROWS, Blocks, HeldBlocks, SpilledBlocks, starts_of
from harmonrank.data.rows.memory import memory_limit, needed_memory
from harmonrank.data.schema import Schema
from harmonrank.support.errors import DataError

Found = TypeVar("Found")
Made = TypeVar("Made")

RowChoice = Callable[[Log, int], np.ndarray]
"""Which rows of a block are taken, given the place of its first one: their places in the block."""


class LogBlocks(Blocks[Log]):
    """The rows of a log in blocks of a fixed size.

    Attributes:
        schema: Which column is what.
        name: What errors call the log.
        folder: Where what is made of blocks is kept; None for that of temporary files.
    """

    schema: Schema
    name: str
    folder: Path | None = None
    _size: int
    _choice: RowChoice | None = None
    _change: Callable[[Log], Log] | None = None

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows the log has."""

    @abstractmethod
    def _part(self, first: int, end: int) -> Log:
        """Return some rows as they are."""

    @property
    def starts(self) -> range:
        """The place of each block's first row."""
        return starts_of(self.rows, self._size)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> Log:
        first = number * self._size
        log = self._part(first, min(first + self._size, self.rows))
        log = log if self._change is None else self._change(log)
        return log if self._choice is None else log.take(self._choice(log, first))

    def only(self, choice: RowChoice) -> Self:
        """Return the same blocks with some of their rows; `rows` and `starts` are of the log."""
        chosen = copy(self)
        chosen._choice = choice
        return chosen

    def under(self, schema: Schema) -> Self:
        """Return the same blocks under a schema of the same columns."""
        other = copy(self)
        other.schema = schema
        return other

    def changed(self, change: Callable[[Log], Log], schema: Schema) -> Self:
        """Return the same blocks, each changed when it is read, with the schema that it then has.

        A choice of rows is made of what was changed.
        """
        other = self.under(schema)
        other._change = change
        return other


class MemoryBlocks(LogBlocks):
    """A log in memory, of which a block is a view."""

    def __init__(self, log: Log, *, size: int | None = None) -> None:
        self._log, self.schema, self.name = log, log.schema, "the table"
        self._size = size or BLOCK_ROWS

    @property
    def rows(self) -> int:
        """How many rows the log has."""
        return self._log.rows

    def _part(self, first: int, end: int) -> Log:
        log = self._log.part(slice(first, end))
        return log.aligned(self.schema)

    def _kept(self, blocks: Iterable[Made]) -> Blocks[Made]:
        return HeldBlocks(blocks)


class FileBlocks(LogBlocks):
    """A table of parquet files in blocks of rows, which may begin in one file and end in another.

    A block is read and checked when it is asked for, and the next one while it is worked on. Errors
    name rows by their place in the table.

    Args:
        source: A file, a folder, a glob or a list of them.
        schema: Which column is what.
        labels: Also read labels, requests and the like.
        size: Rows of a block; `BLOCK_ROWS` if left out.
        folder: Where what is made of blocks is kept.
    """

    def __init__(
        self,
        source: Paths,
        schema: Schema,
        *,
        labels: bool = True,
        size: int | None = None,
        folder: Path | None = None,
    ) -> None:
        require_polars_threads(f"Reading {describe(source)}")
        self._files, self.name = TableFiles.of(source), describe(source)
        if self._files.kind != "parquet":
            raise DataError(
                f"Only parquet is read in blocks, of which one at a time is in memory. Got "
                f"{self.name}, a {self._files.kind} table; convert it, or raise --memory."
            )
        self.schema, self._labels = schema, labels
        self._size, self.folder = size or BLOCK_ROWS, folder
        self._columns = self._needed(source)
        self._types = self._files.types(self._columns)
        self._edges = np.cumsum([0, *map(count_rows, self._files.paths)])
        if not self.rows:
            raise DataError(f"{self.name} has no rows; expected at least one.")

    def _needed(self, source: Paths) -> list[str]:
        schema, there = self.schema, self._files.columns
        columns = [*schema.score_columns, *table_columns(schema.context, there)]
        truth = []
        if self._labels:
            given = (schema.request, schema.sample_weight, schema.position)
            columns += [*schema.names, *(name for name in given if name)]
            truth = [name for name in schema.truth.values() if name in there]
        columns = list(dict.fromkeys([*columns, *truth]))
        check_columns(source, there, columns)
        return columns

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return int(self._edges[-1])

    def _part(self, first: int, end: int) -> Log:
        frame = self._frame(first, end)
        return read_log(frame, self.schema, labels=self._labels, first_row=first, name=self.name)

    def _frame(self, first: int, end: int) -> pl.DataFrame:
        """Return some rows, of as many files as they are in."""
        low, high = np.searchsorted(self._edges, [first, end - 1], side="right") - 1
        parts, types = [], dict(self._types)
        for file in range(low, high + 1):
            before, after = int(self._edges[file]), int(self._edges[file + 1])
            begin, stop = max(first, before), min(end, after)
            if stop > begin:
                path = self._files.paths[file]
                piece = read_piece(path, begin - before, stop - begin, self._columns)
                parts.append(piece.cast(types))  # type: ignore[arg-type]
        return parts[0] if len(parts) == 1 else pl.concat(parts)

    def _visit(self, look: Callable[[int, Log], Found]) -> Iterator[Found]:
        # One block is read while another is worked on.
        with ThreadPoolExecutor(1) as thread:
            coming: Future[Log] = thread.submit(self.__getitem__, 0)
            for number in range(len(self)):
                log = coming.result()
                if number + 1 < len(self):
                    coming = thread.submit(self.__getitem__, number + 1)
                yield look(number, log)

    def _kept(self, blocks: Iterable[Made]) -> Blocks[Made]:
        return SpilledBlocks(blocks, self.folder)


def log_blocks(
    source: "Source | LogBlocks", schema: Schema, memory: str | None = None
) -> LogBlocks:
    """Return the rows of a table in blocks: in memory, if they fit there.

    Args:
        source: A path, a list of paths, a polars, pandas or pyarrow table, a log, or blocks.
        schema: Which column is what.
        memory: How much a table may take, such as '3GB'; half of what is free if left out.
    """
    if isinstance(source, LogBlocks):
        return source.under(schema)
    if is_paths(source) and needed_memory(source, schema) > memory_limit(memory):
        return FileBlocks(source, schema)
    return MemoryBlocks(read_log(source, schema))
