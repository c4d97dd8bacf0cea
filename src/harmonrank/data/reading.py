"""Reading a log: the columns that a schema names, checked."""

__all__ = ["read_log"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data.forks import require_polars_threads
from harmonrank.data.log import Log, selected
from harmonrank.data.schema import Schema
from harmonrank.data.tables import Source, column_names, describe, open_table
from harmonrank.errors import DataError


def read_log(
    source: Source,
    schema: Schema | Mapping[str, Any],
    *,
    labels: bool = True,
    sample_weight: bool = False,
    first_row: int = 0,
    name: str | None = None,
) -> Log:
    """Read and check the columns that a schema names.

    Args:
        source: A path, a polars, pandas or pyarrow table, or a log that was read before, whose
            columns are put in the order of the schema (see `Log.aligned`).
        schema: Which column is what; a dict of its parts will do.
        labels: Also read labels, requests, sample weights and, where there, true probabilities.
        sample_weight: Without labels: also read sample weights, where the table has them.
        first_row: Where the source begins in a larger table, so that errors name the right row.
        name: What errors call the source; its path if left out.

    Raises:
        DataError: A column is missing, of the wrong type, or holds a value that its role
            does not allow; the first offending row and their number are named.
    """
    schema = Schema.of(schema)
    if isinstance(source, Log):
        return source.aligned(schema, labels=labels)
    columns = [*schema.score_columns, *schema.context]
    truth = _truth_columns(source, schema) if labels else []
    if labels:
        columns += [*schema.names, *truth]
        columns += [name for name in (schema.request, schema.sample_weight) if name]
    elif sample_weight and schema.sample_weight in column_names(source):
        columns.append(schema.sample_weight)
    frame = open_table(source, columns)
    check = _Check(name or describe(source), first_row)
    log = Log(
        schema=schema,
        scores=check.probabilities(frame, schema.score_columns, "Score"),
        context=selected(frame, schema.context),
    )
    if schema.sample_weight in columns:
        log = replace(log, sample_weight=check.sample_weight(frame[schema.sample_weight]))
    if not labels:
        return log
    return replace(
        log,
        labels=check.labels(frame, schema.names),
        request=_request(frame[schema.request]) if schema.request else None,
        truth=check.probabilities(frame, truth, "Truth") if truth else None,
    )


def _stacked(frame: pl.DataFrame, columns: Sequence[str], kind: type[np.generic]) -> np.ndarray:
    """Return columns side by side, (rows, columns), with none of Polars' threads."""
    values = np.empty((frame.height, len(columns)), kind)
    for place, name in enumerate(columns):
        values[:, place] = frame[name].to_numpy()
    return values


def _truth_columns(source: Source, schema: Schema) -> list[str]:
    """Return the truth columns if the schema and the table have one for each objective."""
    columns = [schema.truth[name] for name in schema.names if name in schema.truth]
    known = len(columns) == len(schema.names) and set(columns) <= set(column_names(source))
    return columns if known else []


def _request(series: pl.Series) -> np.ndarray:
    # Only equality of requests matters, so text becomes numbers.
    if series.dtype.is_signed_integer() and not series.null_count():
        return series.cast(pl.Int64).to_numpy()
    if series.dtype.is_nested():
        raise DataError(
            f"Request column '{series.name}' must hold numbers or text. Got type {series.dtype}; "
            "convert it first."
        )
    require_polars_threads(f"A request column of type {series.dtype}")
    return series.alias("").rank("dense").fill_null(0).cast(pl.Int64).to_numpy()


@dataclass(frozen=True)
class _Check:
    """Turns columns into arrays, or says what is wrong with them and where."""

    table: str
    first_row: int

    def _column(self, role: str, name: str) -> str:
        table = "the table" if self.table == "The table" else self.table
        return f"{role} column '{name}' of {table}"

    def probabilities(self, frame: pl.DataFrame, columns: Sequence[str], role: str) -> np.ndarray:
        for name in columns:
            column = self._column(role, name)
            self._numeric(frame[name], column, "numbers in [0, 1]")
            allowed = (frame[name] >= 0) & (frame[name] <= 1)
            self._refuse(frame[name], allowed, f"{column} must lie in [0, 1]")
        single = all(frame.schema[name] == pl.Float32 for name in columns)
        return _stacked(frame, columns, np.float32 if single else np.float64)

    def labels(self, frame: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
        for name in columns:
            series, column = frame[name], self._column("Label", name)
            if series.dtype == pl.Boolean:
                allowed = series.is_not_null()
            else:
                self._numeric(series, column, "0 and 1")
                allowed = (series == 0) | (series == 1)
            self._refuse(series, allowed, f"{column} must be 0 or 1")
        return _stacked(frame, columns, np.uint8)

    def sample_weight(self, series: pl.Series) -> np.ndarray:
        column = self._column("Weight", series.name)
        self._numeric(series, column, "numbers from 0 up")
        weight = series.alias("").cast(pl.Float64)
        allowed = weight.is_between(0, float("inf"), closed="left")
        self._refuse(series, allowed, f"{column} must be finite and 0 or more")
        found = weight.to_numpy()
        if found.mean(dtype=np.longdouble) * len(found) > np.finfo(np.float64).max:
            raise DataError(f"{column} has an infinite sum; divide all weights by the largest.")
        return found

    def _numeric(self, series: pl.Series, column: str, expected: str) -> None:
        if not series.dtype.is_numeric():
            raise DataError(
                f"{column} must hold {expected}. Got type {series.dtype}; convert it first."
            )

    def _refuse(self, series: pl.Series, allowed: pl.Series, rule: str) -> None:
        # Not `fill_null`, which needs Polars' threads. Without its name, which may be a pattern.
        allowed = allowed & series.alias("").is_not_null()
        if allowed.all():
            return
        rows = (~allowed).arg_true()
        value = "null" if series[rows[0]] is None else series[rows[0]]
        raise DataError(
            f"{rule}. Got {value} in row {self.first_row + rows[0]:,} (counted from 0), "
            f"and {len(rows):,} such row{'s' * (len(rows) > 1)} in all; drop or repair them."
        )
