"""TableFiles: one table in one file or many, its columns and its rows."""

__all__ = ["TableFiles", "reading", "scanned", "side_by_side"]

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any, Self

import polars as pl

# A column may be called '*' or '^a$', which polars would take for a pattern anywhere else.
from polars.selectors import by_name

from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.stores import StoreFile, store_sentence
from harmonrank.data.reading.table_paths import Paths, TableFile, table_paths
from harmonrank.support.errors import DataError, did_you_mean

_BROKEN = (EOFError, UnicodeDecodeError, csv.Error, zlib.error)


@dataclass(frozen=True)
class TableFiles:
    """The files of a table, all of one kind and with the same columns.

    Attributes:
        kind: parquet, csv or arrow.
        paths: The files, in the order of their rows.
    """

    kind: str
    paths: tuple[TableFile, ...]

    @classmethod
    def of(cls, source: Paths) -> Self:
        """Find the files that a source stands for.

        Raises:
            DataError: They are missing or empty, of several kinds, or differ in their columns.
        """
        files = cls(*table_paths(source))
        for path in files.paths:
            with reading(path, files.kind):
                if not isinstance(path, StoreFile) and path.stat().st_size == 0:
                    raise DataError(f"'{path}' is empty (0 bytes); expected a {files.kind} table.")
        files._check_same_columns()
        return files

    @cached_property
    def columns(self) -> list[str]:
        """The names of all columns, repeated ones included."""
        return self._columns_of(self.paths[0])

    def _columns_of(self, path: TableFile) -> list[str]:
        with reading(path, self.kind):
            if self.kind != "csv":
                return list(self._types_of(path))
            assert isinstance(path, Path), "only parquet is read by URL"
            opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
            with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
                return next(csv.reader(stream), [])

    def _types_of(self, path: TableFile) -> dict[str, pl.DataType]:
        return dict(self._scan(path, ()).collect_schema())

    def _check_same_columns(self) -> None:
        if len(self.paths) == 1:
            return
        first, known = self.paths[0], set(self.columns)
        for path in self.paths[1:]:
            there = set(self._columns_of(path))
            for name in self.columns:
                if name not in there:
                    hint = did_you_mean(name, there) if there else "It has no columns."
                    raise DataError(
                        f"Part '{path}' has no column '{name}', which '{first}' has; all parts of "
                        f"a table must have the same columns. {hint}"
                    )
            for name in there - known:
                raise DataError(
                    f"Part '{path}' has a column '{name}', which '{first}' lacks; all parts of a "
                    "table must have the same columns."
                )

    def types(self, columns: Sequence[str] | None = None) -> dict[str, pl.DataType]:
        """Return the common type of each column, of parquet or arrow; of all, if none is named."""
        names = self.columns if columns is None else columns
        parts = []
        for path in self.paths:
            with reading(path, self.kind):
                there = self._types_of(path)
            parts.append({name: there[name] for name in names})
        return self._common(parts)

    def _common(self, parts: Sequence[Mapping[str, pl.DataType]]) -> dict[str, pl.DataType]:
        """Return the type of each column that holds the values of all files."""
        common: dict[str, pl.DataType] = {}
        for path, types in zip(self.paths, parts, strict=True):
            for name, kind in types.items():
                common[name] = _joined(common.get(name, kind), kind, path, name)
        return common

    def read(self, columns: Sequence[str], rows: int | None = None) -> pl.DataFrame:
        """Return some columns of all rows, or of about so many: the first ones of each file."""
        require_polars_threads(f"Reading '{self.paths[0]}'")
        each = None if rows is None else -(-rows // len(self.paths))
        return self._joined([self._read(path, list(columns), each) for path in self.paths])

    def _joined(self, parts: list[pl.DataFrame]) -> pl.DataFrame:
        if len(parts) == 1:
            return parts[0]
        common: Any = self._common([part.schema for part in parts])
        return pl.concat([part.cast(common) for part in parts])

    def _read(self, path: TableFile, columns: list[str], rows: int | None) -> pl.DataFrame:
        with reading(path, self.kind):
            if self.kind == "csv":
                assert isinstance(path, Path), "only parquet is read by URL"
                # All rows decide a column's type: one that begins with whole numbers may go on
                # with fractions. Columns are named by their numbers.
                there = self._columns_of(path)
                numbers = sorted(there.index(name) for name in columns)
                frame = pl.read_csv(
                    path, columns=numbers, infer_schema_length=None, n_rows=rows, glob=False
                )
                if len(self.paths) > 1:
                    # A part may have no value in a column, which then has any type.
                    empty = [s.name for s in frame if s.null_count() == frame.height]
                    frame = frame.cast(dict.fromkeys(empty, pl.Null()))
            else:
                lazy = self._scan(path, ()).select(by_name(*columns))
                frame = (lazy if rows is None else lazy.head(rows)).collect()
            return side_by_side({name: frame[name] for name in columns})

    def scans(self, columns: Sequence[str], text: Sequence[str] = ()) -> list[pl.LazyFrame]:
        """Return some columns of each file, of the same types, to be read when they are needed.

        Args:
            columns: Which.
            text: Columns that a csv file must not take for numbers, such as ids.
        """
        lazy = [self._scan(path, text).select(by_name(*columns)) for path in self.paths]
        if len(lazy) == 1 or self.kind == "csv":
            return lazy
        common: dict[Any, Any] = self.types(columns)
        return [part.cast(common) for part in lazy]

    def _scan(self, path: TableFile, text: Sequence[str]) -> pl.LazyFrame:
        if self.kind == "parquet":
            return scanned(path)
        if self.kind == "arrow":
            # Before 1.35 Polars takes any path here for a pattern.
            return pl.scan_ipc(escape(str(path)))
        assert isinstance(path, Path), "only parquet is read by URL"
        seen = pl.scan_csv(path, glob=False).collect_schema()
        # The first rows decide a column's type; whole numbers may yet go on with fractions.
        types: dict[str, Any] = {
            name: pl.Float64() for name, kind in seen.items() if kind.is_integer()
        }
        types |= {name: pl.String() for name in text}
        return pl.scan_csv(path, schema_overrides=types, glob=False)


def scanned(path: TableFile) -> pl.LazyFrame:
    """Return a parquet file, to be read when it is needed."""
    # A name with a star in it is the name of a file here.
    return pl.scan_parquet(path.url if isinstance(path, StoreFile) else path, glob=False)


def side_by_side(columns: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Return a frame of columns, with none of Polars' threads."""
    frame = pl.DataFrame(list(columns.values()))
    frame.columns = list(columns)  # an unnamed one would be called by its number
    return frame


def _joined(a: pl.DataType, b: pl.DataType, path: TableFile, name: str) -> pl.DataType:
    """Return the type that holds the values of both."""
    if a == b or b == pl.Null:
        return a
    if a == pl.Null:
        return b
    if _family(a) != _family(b):
        raise DataError(
            f"Part '{path}' has type {b} in column '{name}', and the parts before it {a}; convert "
            "it, so that all parts have the same."
        )
    empty = [pl.DataFrame(schema={name: kind}) for kind in (a, b)]
    return pl.concat(empty, how="vertical_relaxed").schema[name]


def _family(kind: pl.DataType) -> str:
    if kind.is_numeric() or kind == pl.Boolean:
        return "number"
    if isinstance(kind, pl.String | pl.Categorical | pl.Enum):
        return "text"
    if isinstance(kind, pl.Date | pl.Datetime):
        return f"time {getattr(kind, 'time_zone', None)}"
    return str(kind)


@contextmanager
def reading(path: TableFile, kind: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one sentence."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, *_BROKEN) as error:
        if isinstance(path, StoreFile):
            raise DataError(store_sentence(str(path), error)) from None
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise DataError(
            f"'{path}' cannot be read as {kind}: {reason}; "
            "it may be truncated or of another kind, so write it again."
        ) from None
