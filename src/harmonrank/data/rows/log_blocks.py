"""Blocks of a log: in memory, or of a parquet table as checked logs that are read when needed."""

__all__ = ["FileBlocks", "LogBlocks", "MemoryBlocks", "log_blocks", "memory_limit", "needed_memory"]

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from itertools import chain
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
import polars as pl

from harmonrank.data.log import Log
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.logs import named_columns, read_log
from harmonrank.data.reading.parquet import ahead, count_rows, read_piece
from harmonrank.data.reading.table_files import TableFiles
from harmonrank.data.reading.table_paths import Paths, is_paths
from harmonrank.data.reading.tables import Source, check_columns, describe
from harmonrank.data.rows.blocks import BLOCK_ROWS, Blocks, HeldBlocks, SpilledBlocks, starts_of
from harmonrank.data.schema import Schema
from harmonrank.support.errors import DataError, UsageError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SHARE = 0.5  # Of the memory that is free: others use some, and so does what follows.
_FALLBACK = 4 << 30
# What a fit and its checks take beside each number that is read, measured at 10M rows.
_BYTES = 24

Result = TypeVar("Result")
Made = TypeVar("Made")

RowChoice = Callable[[Log, int], np.ndarray]
"""Which rows of a block are taken, given the number of its first one in the log."""


def memory_limit(text: str | None) -> int:
    """Return how many bytes '3GB' says; without it, half of what is free.

    >>> memory_limit("3GB") == 3 << 30
    True

    Raises:
        UsageError: It is no such size.
    """
    if text is None:
        return int(_SHARE * _free())
    size = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    if size is None or not float(size[1]):
        raise UsageError(f"--memory takes a size such as 3GB or 500MB. Got '{text}'.")
    return int(float(size[1]) * _UNITS[size[2].upper()])


def _free() -> int:
    """Return how many bytes are free, as the system tells; 4 GB where it does not."""
    try:
        facts = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return _FALLBACK
    available = re.search(r"MemAvailable:\s+([0-9]+) kB", facts)
    return _FALLBACK if available is None else int(available[1]) << 10


def needed_memory(source: Paths, schema: Schema) -> int:
    """Return about how many bytes it takes to have the rows of a parquet table in memory.

    0 of a table of another kind, whose rows can be counted only by reading them.
    """
    files = TableFiles.of(source)
    if files.kind != "parquet":
        return 0
    given = (schema.request, schema.user, schema.sample_weight, schema.position, schema.time)
    columns = 2 * len(schema.names) + len(schema.context) + sum(name is not None for name in given)
    return count_rows(files) * columns * _BYTES


class LogBlocks(Blocks[Log]):
    """The rows of a log in blocks of a fixed size.

    Attributes:
        schema: Which column is what.
        name: What errors call the log.
    """

    schema: Schema
    name: str
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
        """The number of each block's first row."""
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

    def __init__(self, log: Log) -> None:
        self._log, self.schema, self.name = log, log.schema, "the table"
        self._size = BLOCK_ROWS

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
    name rows by their number in the table.

    Args:
        source: A file, a folder, a glob or a list of them.
        schema: Which column is what.
        size: Rows of a block; `BLOCK_ROWS` if left out.
    """

    def __init__(self, source: Paths, schema: Schema, *, size: int | None = None) -> None:
        require_polars_threads(f"Reading {describe(source)}")
        self._files, self.name = TableFiles.of(source), describe(source)
        if self._files.kind != "parquet":
            raise DataError(
                f"Only parquet is read in blocks, of which one at a time is in memory. Got "
                f"{self.name}, a {self._files.kind} table; convert it, or raise --memory."
            )
        self.schema, self._size = schema, size or BLOCK_ROWS
        named = named_columns(schema, self._files.columns)
        self._columns = list(dict.fromkeys(chain(*named.values())))
        check_columns(source, self._files.columns, self._columns)
        self._types = self._files.types(self._columns)
        self._edges = np.cumsum([0, *map(count_rows, self._files.paths)])
        if not self.rows:
            raise DataError(f"{self.name} has no rows; expected at least one.")

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return int(self._edges[-1])

    def _part(self, first: int, end: int) -> Log:
        frame = self._frame(first, end)
        return read_log(frame, self.schema, first_row=first, name=self.name)

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

    def _visit(self, look: Callable[[int, Log], Result]) -> Iterator[Result]:
        # One block is read while another is worked on.
        for number, log in enumerate(ahead(self.__getitem__, range(len(self)))):
            yield look(number, log)

    def _kept(self, blocks: Iterable[Made]) -> Blocks[Made]:
        return SpilledBlocks(blocks)


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
