"""LogSource: the official files of a data set, and how their rows become ours."""

__all__ = [
    "LogSource",
    "TableSource",
    "check_folder",
    "check_labels",
    "columns_of",
    "missing_files",
]

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from harmonrank.data.logs._columns import FeatureTable, LogColumns
from harmonrank.data.tables import column_names
from harmonrank.errors import DataError


@dataclass(frozen=True)
class TableSource:
    """A file of features and what becomes of it.

    Attributes:
        path: The official file.
        table: The columns of the table to be written.
        names: Each column to be written by its name in the file.
        clean: From text columns to typed ones, of which the first is the id.
        count: How often each oddity was met in the text columns.
    """

    path: Path
    table: FeatureTable
    names: Mapping[str, str]
    clean: Callable[[pl.DataFrame], pl.DataFrame]
    count: Callable[[pl.DataFrame], dict[str, int]]


@dataclass(frozen=True)
class LogSource:
    """Official files, found and understood.

    Attributes:
        files: The log files in the order in which rows are numbered.
        columns: The roles of the columns to be written.
        reads: The source columns that `clean` needs.
        key_column: The source column that decides a row's part of the split.
        key: From that column to whole numbers: a row with a smaller one is never in a later part.
        split_by: What the split goes by, in words.
        clean: From source columns, whole numbers, to the columns to be written but for the row
            number and the truth.
        count: How often each oddity was met in the source columns.
        notes: What a reader of the result has to know.
        tables: Files of features.
        truth: True probabilities in the order of the rows, where the files were simulated.
    """

    files: tuple[Path, ...]
    columns: LogColumns
    reads: tuple[str, ...]
    key_column: str
    key: Callable[[np.ndarray], np.ndarray]
    split_by: str
    clean: Callable[[pl.DataFrame], pl.DataFrame]
    count: Callable[[pl.DataFrame], dict[str, int]]
    notes: tuple[str, ...] = ()
    tables: tuple[TableSource, ...] = ()
    truth: Path | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


def check_folder(folder: str | Path) -> Path:
    """Return the folder, or say that it is not there."""
    if not Path(folder).is_dir():
        raise DataError(f"There is no folder '{folder}'; check its name.")
    return Path(folder)


def columns_of(
    files: Sequence[Path], required: Sequence[str], labels: Sequence[str] = ()
) -> list[str]:
    """Return the columns that all files have, or say which one is missing where.

    Args:
        files: The log files.
        required: Columns that every file must have.
        labels: Columns that all files have or none: one bad header must not cost an objective.
    """
    somewhere = {name for file in files for name in column_names(file)}
    required = [*required, *(name for name in labels if name in somewhere)]
    there = column_names(files[0])
    for file in files:
        names = column_names(file)
        there = [name for name in there if name in names]
        lacking = [name for name in required if name not in names]
        if lacking:
            raise DataError(
                f"'{file}' has no column '{lacking[0]}', so it is not the official file; "
                f"expected at least {', '.join(required)}. Got {', '.join(names[:30])}."
            )
    return there


def missing_files(folder: Path, kind: str, expected: str, download: str, page: str) -> DataError:
    """Return the error that says what to download, and where its licence is agreed to."""
    return DataError(
        f"'{folder}' holds no {kind} log: expected {expected}. Download {download} from {page}, "
        "where its licence must be agreed to; nothing is downloaded for you."
    )


def check_labels(frame: pl.DataFrame, columns: Sequence[str], path: Path) -> None:
    """Refuse a label that is not 0 or 1."""
    for name in columns:
        wrong = ~frame[name].is_in([0, 1]).fill_null(value=False)
        if wrong.any():
            value = frame[name].filter(wrong)[0]
            raise DataError(
                f"Label column '{name}' of '{path}' must be 0 or 1. "
                f"Got {'null' if value is None else value}; drop or repair such rows."
            )
