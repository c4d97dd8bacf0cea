"""Sums of groups of rows of a log that no memory holds."""

__all__ = ["grouped_sums"]

from collections.abc import Callable, Sequence

import polars as pl

from harmonrank.data.reading import (
    Source,
    TableFiles,
    check_columns,
    column_names,
    is_paths,
    open_table,
    reading,
)

_PIECE_ROWS = 2_000_000


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
        return query(open_table(source, columns).lazy()).collect(engine="streaming")
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
