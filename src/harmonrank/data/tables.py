"""Tables: a file or data frame in, checked columns out."""

__all__ = [
    "Source",
    "check_columns",
    "column_names",
    "file_kind",
    "grouped_sums",
    "open_table",
    "reading",
]

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import polars as pl

# A column may be called '*' or '^a$', which polars would take for a pattern anywhere else.
from polars.selectors import by_name

from harmonrank.data.forks import require_polars_threads
from harmonrank.errors import DataError, DependencyError, did_you_mean
from harmonrank.extras import remedy

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from harmonrank.data.log import Log

Source = Union[
    str, Path, pl.DataFrame, pl.LazyFrame, "pd.DataFrame", "pa.Table", "pa.RecordBatch", "Log"
]
"""A path to parquet, csv or arrow, a polars, pandas or pyarrow table, or a log read before."""

_READERS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


_PIECE_ROWS = 2_000_000
_BROKEN = (EOFError, UnicodeDecodeError, csv.Error, zlib.error)


def open_table(source: Source, columns: Sequence[str]) -> pl.DataFrame:
    """Return the named columns of a file or data frame, rows in order.

    Raises:
        DataError: The file is missing, empty, truncated or of an unknown kind, a column is
            missing, or two columns share a name.
    """
    columns = list(dict.fromkeys(columns))
    check_columns(source, column_names(source), columns)
    if isinstance(source, str | Path):
        frame = _open_file(Path(source), columns)
    else:
        frame = _from_memory(source, columns)
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
    if not isinstance(source, str | Path):
        lazy = source if isinstance(source, pl.LazyFrame) else _from_memory(source, columns).lazy()
        return query(lazy.select(by_name(*columns))).collect(engine="streaming")
    path = Path(source)
    kind = file_kind(path)
    with reading(path, kind):
        lazy = _scan(path, kind, text).select(by_name(*columns))
        if kind == "csv":
            return query(lazy).collect(engine="streaming")
        return _piecewise(lazy, query, list(keys))


def _piecewise(
    lazy: pl.LazyFrame, query: Callable[[pl.LazyFrame], pl.LazyFrame], keys: list[str]
) -> pl.DataFrame:
    """Sum up piece by piece: the engine alone reads far ahead of what it has summed up."""

    def added(parts: list[pl.DataFrame]) -> pl.DataFrame:
        return pl.concat(parts).group_by(keys).agg(pl.all().sum())

    rows = int(lazy.select(pl.len()).collect().item())
    parts = [query(lazy.head(0)).collect()]
    for first in range(0, rows, _PIECE_ROWS):
        parts.append(query(lazy.slice(first, _PIECE_ROWS)).collect(engine="streaming"))
        if sum(part.height for part in parts) > _PIECE_ROWS:
            parts = [added(parts)]
    return added(parts)


def _scan(path: Path, kind: str, text: Sequence[str]) -> pl.LazyFrame:
    if kind == "parquet":
        return pl.scan_parquet(path)
    if kind == "arrow":
        return pl.scan_ipc(path)
    seen = pl.scan_csv(path).collect_schema()
    # The first rows decide a column's type; whole numbers may yet go on with fractions.
    types = {name: pl.Float64() for name, kind in seen.items() if kind.is_integer()}
    return pl.scan_csv(path, schema_overrides=types | {name: pl.String() for name in text})


def describe(source: Source) -> str:
    """Return how an error names a source."""
    return f"'{source}'" if isinstance(source, str | Path) else "The table"


def column_names(source: Source) -> list[str]:
    """Return the names of all columns, repeated ones included, without reading the rows."""
    if isinstance(source, str | Path):
        path = Path(source)
        kind = file_kind(path)
        with reading(path, kind):
            if not path.exists():
                raise DataError(f"There is no file '{path}'; check its name.")
            if path.is_dir():
                raise DataError(f"'{path}' is a folder; expected one {kind} file.")
            if path.stat().st_size == 0:
                raise DataError(f"'{path}' is empty (0 bytes); expected a {kind} table.")
            return _file_columns(path, kind)
    if isinstance(source, pl.LazyFrame):
        return source.collect_schema().names()
    if isinstance(source, pl.DataFrame):
        return source.columns
    if _is_a(source, "pyarrow", "Table", "RecordBatch"):
        return list(source.schema.names)
    if _is_a(source, "pandas", "DataFrame"):
        frame: Any = source
        return [str(name) for name in frame.columns]
    raise DataError(
        f"A table must be a path or a polars, pandas or pyarrow table. Got {type(source).__name__}."
    )


def _is_a(source: Source, package: str, *names: str) -> bool:
    # Asked by name, so that a package nobody uses is not imported.
    kinds = type(source).__mro__
    return any(k.__name__ in names and k.__module__.split(".")[0] == package for k in kinds)


def _open_file(path: Path, columns: list[str]) -> pl.DataFrame:
    kind = file_kind(path)
    require_polars_threads(f"Reading '{path}'")
    with reading(path, kind):
        if kind == "csv":
            # All rows decide a column's type: one that begins with whole numbers may go on
            # with fractions. Columns are named by their places.
            there = _file_columns(path, kind)
            places = sorted(there.index(name) for name in columns)
            frame = pl.read_csv(path, columns=places, infer_schema_length=None)
        else:
            frame = _scan(path, kind, ()).select(by_name(*columns)).collect()
        return pl.DataFrame([frame[name] for name in columns])


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one sentence."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, *_BROKEN) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise DataError(
            f"'{path}' cannot be read as {kind}: {reason}; "
            "it may be truncated or of another kind, so write it again."
        ) from None


def file_kind(path: Path) -> str:
    """Return parquet, csv or arrow by the file's ending."""
    name = path.name.lower()
    for ending, kind in _READERS.items():
        if name.endswith(ending):
            return kind
    raise DataError(f"'{path}' has no known ending; expected one of {', '.join(_READERS)}.")


def _file_columns(path: Path, kind: str) -> list[str]:
    if kind == "parquet":
        return list(pl.read_parquet_schema(path))
    if kind == "arrow":
        return list(pl.read_ipc_schema(path))
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
        return next(csv.reader(stream), [])


def _from_memory(source: Any, columns: list[str]) -> pl.DataFrame:
    if isinstance(source, pl.LazyFrame):
        require_polars_threads("A lazy table")
        return source.select(by_name(*columns)).collect()
    # Column by column, which needs none of Polars' threads: they do not survive a fork.
    if isinstance(source, pl.DataFrame):
        return pl.DataFrame([source[name] for name in columns])
    if _is_a(source, "pyarrow", "Table", "RecordBatch"):
        return pl.DataFrame([pl.Series(name, source.column(name)) for name in columns])
    named = source.set_axis([str(name) for name in source.columns], axis="columns")
    try:
        # A NaN stays one, so that an error can call it by its name.
        return pl.DataFrame(
            [pl.from_pandas(named[name], nan_to_null=False).alias(name) for name in columns]
        )
    except ImportError:
        raise DependencyError(
            "A pandas table with text, categories or missing values needs the package 'pyarrow'; "
            f"{remedy('pyarrow')}."
        ) from None


def check_columns(source: Source, there: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse a table that lacks a wanted column or has it twice."""
    counts = Counter(there)
    for name in wanted:
        if counts[name] == 0:
            hint = did_you_mean(name, counts) if counts else "It has no columns."
            raise DataError(f"{describe(source)} has no column '{name}'. {hint}")
        if counts[name] > 1:
            raise DataError(
                f"{describe(source)} has {counts[name]} columns named '{name}'; expected one, "
                "so rename or drop the others."
            )
