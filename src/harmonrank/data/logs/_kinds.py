"""Kinds: whether the tables of an imported log hold what its columns say."""

__all__ = ["check_kinds", "check_table", "reading"]

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from harmonrank.data.logs._columns import FeatureTable, LogColumns
from harmonrank.errors import DataError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say in one sentence why a table of an imported log cannot be read."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(f"'{path}' cannot be read: {reason}; import it again.") from None


def check_kinds(path: Path, of: LogColumns | FeatureTable) -> None:
    """Refuse a file that lacks a column of its log, or has one of another type.

    Only its footer is read.
    """
    with reading(path):
        found = pl.read_parquet_schema(path)
    if isinstance(of, LogColumns):
        whole = [of.row, of.user, of.item, of.request, *of.objectives]
        whole += [of.time] if of.time else []
        fractions = list(of.truth.values())
    else:
        whole, fractions = [of.id], []
    _require(path, found, whole, lambda kind: kind.is_integer(), "whole numbers")
    numbers = [*of.numeric, *fractions]
    _require(path, found, numbers, lambda kind: kind.is_numeric(), "numbers")
    _require(path, found, of.categorical, _is_category, "text or whole numbers")


def check_table(frame: pl.DataFrame, table: FeatureTable, path: Path) -> pl.DataFrame:
    """Return a table of features whose ids ascend, as they were written."""
    ids = frame[table.id]
    if ids.null_count() or not (ids.diff().slice(1) > 0).all():
        raise DataError(f"Column '{table.id}' of '{path}' must ascend; import the log again.")
    return frame


def _is_category(kind: pl.DataType) -> bool:
    return kind.is_integer() or kind in (pl.String, pl.Boolean)


def _require(
    path: Path,
    found: Mapping[str, pl.DataType],
    columns: Iterable[str],
    allowed: Callable[[pl.DataType], bool],
    expected: str,
) -> None:
    for name in columns:
        if name not in found:
            raise DataError(f"'{path}' has no column '{name}'; import the log again.")
        if not allowed(found[name]):
            raise DataError(
                f"Column '{name}' of '{path}' must hold {expected}. Got type {found[name]}; import "
                "the log again."
            )
