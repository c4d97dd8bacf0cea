"""Tables: a file or data frame in, checked columns out, and all that is wrong said at once."""

__all__ = [
    "Faults",
    "Source",
    "check_columns",
    "column_names",
    "describe",
    "is_pandas",
    "offence",
    "open_table",
]

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import polars as pl

# A column may be called '*' or '^a$', which polars would take for a pattern anywhere else.
from polars.selectors import by_name

from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.reading.table_files import TableFiles, side_by_side
from harmonrank.data.reading.table_paths import Paths, is_paths, shown_name
from harmonrank.support.errors import DataError, DependencyError, did_you_mean
from harmonrank.support.extras import remedy

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from harmonrank.data.log import Log

_MOST_LISTED = 20


_Frame = Union[pl.DataFrame, pl.LazyFrame, "pd.DataFrame", "pa.Table", "pa.RecordBatch"]
Source = Union[Paths, _Frame, "Log"]
"""A path or a URL of parquet, csv or arrow (a file, a folder or a glob), a list of such, a polars,
pandas or pyarrow table, or a log read before."""


@dataclass(frozen=True)
class Faults:
    """Gathers what is wrong with the columns of a table.

    Attributes:
        table: How errors call the table.
    """

    table: str
    _faults: list[tuple[str, str]] = field(default_factory=list)

    def add(self, column: str, sentence: str) -> None:
        """Add a fault: the column with its role, and how the sentence about it goes on."""
        table = "the table" if self.table == "The table" else self.table
        self._faults.append((f"{column} of {table} {sentence}", f"{column} {sentence}"))

    def present(self, there: Iterable[str], wanted: Iterable[str]) -> list[str]:
        """Return the wanted columns that are there once; note the others.

        Raises:
            DataError: None of them is there.
        """
        counts, once = Counter(there), []
        for name in dict.fromkeys(wanted):
            if counts[name] == 1:
                once.append(name)
                continue
            if counts[name]:
                rest = f"{counts[name]} columns named '{name}'; expected one, so rename or drop "
                fault = f"{rest}the others."
            else:
                hint = did_you_mean(name, counts) if counts else "It has no columns."
                fault = f"no column '{name}'. {hint}"
            self._faults.append((f"{self.table} has {fault}", f"It has {fault}"))
        if not once:
            self.refuse()
        return once

    def refuse(self) -> None:
        """Raise one error: a sentence for a single fault, a list for several.

        Raises:
            DataError: There is a fault.
        """
        if not self._faults:
            return
        if len(self._faults) == 1:
            raise DataError(self._faults[0][0])
        lines = [f"\n- {listed}" for _, listed in self._faults[:_MOST_LISTED]]
        if len(self._faults) > _MOST_LISTED:
            lines.append(f"\n- and {len(self._faults) - _MOST_LISTED} more.")
        raise DataError(f"{self.table} has {len(self._faults)} faults:{''.join(lines)}")


def offence(values: Any, rows: Any, first_row: int = 0, remedy: str = "") -> str:
    """Return how a sentence about values that are not allowed ends.

    >>> offence([0.1, None, 7.0], [1, 2], first_row=100)
    'Got null in row 101 (counted from 0), and 2 such rows in all; drop or repair them.'

    Args:
        values: Of the column.
        rows: The numbers of the rows that hold such values.
        first_row: The number of the first row in a larger table.
        remedy: What to do about it.
    """
    value = values[rows[0]]
    return (
        f"Got {'null' if value is None else value} in row {first_row + rows[0]:,} (counted from "
        f"0), and {len(rows):,} such row{'s' * (len(rows) > 1)} in all; "
        f"{remedy or 'drop or repair them'}."
    )


def open_table(
    source: Source, columns: Sequence[str] | None, *, rows: int | None = None, empty: bool = False
) -> pl.DataFrame:
    """Return the rows of a file or data frame, in order.

    Args:
        source: A path, a list of paths or a table.
        columns: Which columns; all of them for None.
        rows: Only about so many rows: of many files, the first ones of each.
        empty: Whether a table without rows will do.

    Raises:
        DataError: The file is missing, empty, truncated or of an unknown kind, a column is
            missing, or two columns share a name.
    """
    files = TableFiles.of(source) if is_paths(source) else None
    there = column_names(source) if files is None else files.columns
    check_columns(source, there, there if columns is None else columns)
    wanted = list(dict.fromkeys(there if columns is None else columns))
    frame = _from_memory(source, wanted, rows) if files is None else files.read(wanted, rows)
    if frame.height == 0 and not empty:
        raise DataError(f"{describe(source)} has no rows; expected at least one.")
    return frame


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


def _from_memory(source: Any, columns: list[str], rows: int | None) -> pl.DataFrame:
    if rows is not None:
        source = source[:rows]
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
