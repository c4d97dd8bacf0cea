"""Tables: a file or data frame in, checked columns out."""

__all__ = [
    "Source",
    "check_columns",
    "column_names",
    "describe",
    "first_rows",
    "grouped_sums",
    "is_pandas",
    "open_table",
]

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import polars as pl

# A column may be called '*' or '^a$', which polars would take for a pattern anywhere else.
from polars.selectors import by_name

from harmonrank.data.reading.faults import Faults
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.table_files import TableFiles, reading, side_by_side
from harmonrank.data.reading.table_paths import is_paths, shown_name
from harmonrank.support.errors import DataError, DependencyError
from harmonrank.support.extras import remedy

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from harmonrank.data.log import Log

Source = Union[
    str,
    Path,
    Sequence[str | Path],
    pl.DataFrame,
    pl.LazyFrame,
    "pd.DataFrame",
    "pa.Table",
    "pa.RecordBatch",
    "Log",
]
"""A path or a URL of parquet, csv or arrow (a file, a folder or a glob), a list of such, a polars,
pandas or pyarrow table, or a log read before."""

_PIECE_ROWS = 2_000_000


def open_table(source: Source, columns: Sequence[str], *, empty: bool = False) -> pl.DataFrame:
    """Return the named columns of a file or data frame, rows in order; some, unless `empty`.

    Raises:
        DataError: The file is missing, empty, truncated or of an unknown kind, a column is
            missing, or two columns share a name.
    """
    columns = list(dict.fromkeys(columns))
    if is_paths(source):
        files = TableFiles.of(source)
        check_columns(source, files.columns, columns)
        frame = files.read(columns)
    else:
        check_columns(source, column_names(source), columns)
        frame = _from_memory(source, columns)
    if frame.height == 0 and not empty:
        raise DataError(f"{describe(source)} has no rows; expected at least one.")
    return frame


def first_rows(source: Source, rows: int) -> pl.DataFrame:
    """Return all columns of some rows: of many files, the first ones of each."""
    if is_paths(source):
        files = TableFiles.of(source)
        check_columns(source, files.columns, files.columns)
        frame = files.first(rows)
    else:
        names = column_names(source)
        check_columns(source, names, names)
        lazy = source if isinstance(source, pl.LazyFrame) else _from_memory(source, names).lazy()
        frame = lazy.head(rows).collect()
    if frame.height == 0:
        raise DataError(f"{describe(source)} has no rows; expected at least one.")
    return frame


def grouped_sums(
    source: Source,
    columns: Sequence[str],
    query: Callable[[pl.LazyFrame], pl.LazyFrame],
    keys: Sequence[str],
    *,
    text: Sequence[str] = (),
) -> pl.DataFrame:
    """Return the sums of groups of rows; memory grows with the groups, not with the rows.

    Args:
        source: A file or data frame.
        columns: The columns that the query sees.
        query: From the lazy columns of some rows to a row per group, of its keys and its sums.
        keys: What the query's result is grouped by.
        text: Columns that a csv file must not take for numbers, such as ids.
    """
    columns = list(dict.fromkeys(columns))
    check_columns(source, column_names(source), columns)
    if not is_paths(source):
        lazy = source if isinstance(source, pl.LazyFrame) else _from_memory(source, columns).lazy()
        return query(lazy.select(by_name(*columns))).collect(engine="streaming")
    files = TableFiles.of(source)
    with reading(files.paths[0], files.kind):
        parts = files.scans(columns, text)
        if files.kind == "csv":
            lazy = pl.concat(parts, how="vertical_relaxed")
            return query(lazy).collect(engine="streaming")
        return _piecewise(parts, query, list(keys))


def _piecewise(
    files: list[pl.LazyFrame], query: Callable[[pl.LazyFrame], pl.LazyFrame], keys: list[str]
) -> pl.DataFrame:
    """Sum up piece by piece: the engine alone reads far ahead of what it has summed up."""

    def added(parts: list[pl.DataFrame]) -> pl.DataFrame:
        return pl.concat(parts).group_by(keys).agg(pl.all().sum())

    parts = [query(files[0].head(0)).collect()]
    for lazy in files:
        rows = int(lazy.select(pl.len()).collect().item())
        for first in range(0, rows, _PIECE_ROWS):
            parts.append(query(lazy.slice(first, _PIECE_ROWS)).collect(engine="streaming"))
            if sum(part.height for part in parts) > _PIECE_ROWS:
                parts = [added(parts)]
    return added(parts)


def describe(source: Source) -> str:
    """Return how an error names a source."""
    if not is_paths(source):
        return "The table"
    if isinstance(source, str | Path):
        return f"'{shown_name(source)}'"
    first, *others = map(shown_name, source)
    return f"'{first}'{f' and {len(others)} more' * bool(others)}"


def column_names(source: Source) -> list[str]:
    """Return the names of all columns, repeated ones included, without reading the rows."""
    if is_paths(source):
        return TableFiles.of(source).columns
    if isinstance(source, pl.LazyFrame):
        return source.collect_schema().names()
    if isinstance(source, pl.DataFrame):
        return source.columns
    if _is_a(source, "pyarrow", "Table", "RecordBatch"):
        arrow: Any = source
        return list(arrow.schema.names)
    if is_pandas(source):
        frame: Any = source
        return [str(name) for name in frame.columns]
    raise DataError(
        f"A table must be a path or a polars, pandas or pyarrow table. Got {type(source).__name__}."
    )


def is_pandas(source: Source) -> bool:
    """Return whether a table is one of pandas."""
    return _is_a(source, "pandas", "DataFrame")


def _is_a(source: Source, package: str, *names: str) -> bool:
    # Asked by name, so that a package nobody uses is not imported.
    kinds = type(source).__mro__
    return any(k.__name__ in names and k.__module__.split(".")[0] == package for k in kinds)


def _from_memory(source: Any, columns: list[str]) -> pl.DataFrame:
    if isinstance(source, pl.LazyFrame):
        require_polars_threads("A lazy table")
        return source.select(by_name(*columns)).collect()
    # Column by column, which needs none of Polars' threads: they do not survive a fork.
    if isinstance(source, pl.DataFrame):
        return side_by_side({name: source[name] for name in columns})
    if _is_a(source, "pyarrow", "Table", "RecordBatch"):
        return side_by_side({name: pl.Series(name, source.column(name)) for name in columns})
    named = source.set_axis([str(name) for name in source.columns], axis="columns")
    try:
        # A NaN stays one, so that an error can call it by its name.
        return side_by_side(
            {name: pl.from_pandas(named[name], nan_to_null=False) for name in columns}
        )
    except ImportError:
        raise DependencyError(
            "A pandas table with text, categories or missing values needs the package 'pyarrow'; "
            f"{remedy('pyarrow')}."
        ) from None


def check_columns(source: Source, there: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse a table that lacks wanted columns or has them twice."""
    faults = Faults(describe(source))
    faults.present(there, wanted)
    faults.refuse()
