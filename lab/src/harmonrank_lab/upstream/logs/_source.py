"""LogSource: the files of a raw log, and how their rows become ours."""

__all__ = [
    "LogSource",
    "TableSource",
    "check_folder",
    "check_labels",
]

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from harmonrank.support.errors import DataError
from harmonrank_lab.upstream.logs._columns import FeatureTable, LogColumns


@dataclass(frozen=True)
class TableSource:
    """A file of features and what becomes of it.

    Attributes:
        path: The raw file.
        table: The columns of the table to be written.
        reads: The source columns that `clean` needs.
        clean: From text columns to typed ones, of which the first is the id.
        count: How often each oddity was met in the text columns.
    """

    path: Path
    table: FeatureTable
    reads: tuple[str, ...]
    clean: Callable[[pl.DataFrame], pl.DataFrame]
    count: Callable[[pl.DataFrame], dict[str, int]]


@dataclass(frozen=True)
class LogSource:
    """Raw files, found and understood.

    Attributes:
        files: The log files in the order in which rows are numbered.
        columns: The roles of the columns to be written.
        reads: The source columns that `clean` needs.
        key_column: The source column that decides a row's part of the split.
        key: From that column to whole numbers: a row with a smaller one is never in a later part.
        texts: The source columns that are read as text; all others hold whole numbers.
        split_by: What the split goes by, in words.
        clean: From source columns to the columns to be written but for the row number and the
            truth.
        count: How often each oddity was met in the source columns.
        notes: What a reader of the result has to know.
        tables: Files of features.
        truth: True probabilities in the order of the rows, where the files were simulated.
        joined: Files whose columns `clean` adds to the rows.
    """

    files: tuple[Path, ...]
    columns: LogColumns
    reads: tuple[str, ...]
    key_column: str
    key: Callable[[pl.Series], np.ndarray]
    split_by: str
    clean: Callable[[pl.DataFrame], pl.DataFrame]
    count: Callable[[pl.DataFrame], dict[str, int]]
    notes: tuple[str, ...] = ()
    tables: tuple[TableSource, ...] = ()
    truth: Path | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()
    joined: tuple[Path, ...] = ()


def check_folder(folder: str | Path) -> Path:
    """Return the folder, or say that it is not there."""
    if not Path(folder).is_dir():
        raise DataError(f"There is no folder '{folder}'; check its name.")
    return Path(folder)


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
