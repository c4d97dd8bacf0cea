"""Log: the checked columns of a table as arrays."""

__all__ = ["Log", "read_log"]

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from harmonrank.data.schema import Schema
from harmonrank.data.tables import Source, column_names, describe, open_table
from harmonrank.errors import DataError


@dataclass(frozen=True)
class Log:
    """Rows of a table, one array per role.

    Attributes:
        scores: (rows, objectives), float32 or float64 as in the table, all in [0, 1].
        context: One column per context feature, as in the table.
        labels: (rows, objectives) of 0 and 1, or None when the table was read to be scored.
        request: (rows,) one number per request.
        sample_weight: (rows,) float64.
        truth: (rows, objectives) true probabilities, in a world.
    """

    schema: Schema
    scores: np.ndarray
    context: pl.DataFrame
    labels: np.ndarray | None = None
    request: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    truth: np.ndarray | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.scores)

    def known_labels(self) -> np.ndarray:
        """Return the labels of a log that was read with them."""
        assert self.labels is not None, "this log was read without labels"
        return self.labels

    def prevalence(self) -> np.ndarray:
        """Return the share of positives of each objective, by sample weight."""
        return np.average(self.known_labels(), axis=0, weights=self.sample_weight)

    def take(self, index: np.ndarray) -> Self:
        """Return some rows, in the order of the index."""
        return self._rows(index, self.context[index])

    def between(self, low: int, high: int) -> Self:
        """Return neighbouring rows, without copying them."""
        return self._rows(slice(low, high), self.context.slice(low, high - low))

    def drawn(self, most: int) -> np.ndarray:
        """Return the places of rows drawn at random, ascending; all if there are no more."""
        if self.rows <= most:
            return np.arange(self.rows)
        # The same rows each time: what is measured on them must not change by itself.
        rng = np.random.default_rng(0)
        return np.sort(rng.choice(self.rows, most, replace=False, shuffle=False))

    def _rows(self, index: np.ndarray | slice, context: pl.DataFrame) -> Self:
        def of(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[index]

        return replace(
            self,
            scores=self.scores[index],
            context=context,
            labels=of(self.labels),
            request=of(self.request),
            sample_weight=of(self.sample_weight),
            truth=of(self.truth),
        )

    def fingerprint(self) -> str:
        """Return a digest of all values and the schema: equal logs have the same."""
        digest = hashlib.sha256(json.dumps(self.schema.to_dict()).encode())
        arrays = (self.scores, self.labels, self.request, self.sample_weight, self.truth)
        context = self.context.hash_rows(seed=0).to_numpy() if self.context.width else None
        for array in (*arrays, context):
            digest.update(b"none" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def require_both_classes(self, purpose: str) -> None:
        """Refuse an objective without a positive or a negative label in a row that counts."""
        labels, weight = self.known_labels(), self.sample_weight
        counted = labels if weight is None else labels[weight > 0]
        positives = counted.sum(axis=0, dtype=np.int64)
        for name, count in zip(self.schema.names, positives, strict=True):
            if count in (0, len(counted)):
                missing = "positive" if count == 0 else "negative"
                raise DataError(
                    f"Objective '{name}' has no {missing} label among the {self.rows:,} {purpose} "
                    "rows, so its ranking has no meaning there; add rows or leave it out."
                )


def read_log(
    source: Source,
    schema: Schema,
    *,
    labels: bool = True,
    first_row: int = 0,
    name: str | None = None,
) -> Log:
    """Read and check the columns that a schema names.

    Args:
        source: A path or a polars, pandas or pyarrow table.
        schema: Which column is what.
        labels: Also read labels, requests, sample weights and, where there, true probabilities.
        first_row: Where the source begins in a larger table, so that errors name the right row.
        name: What errors call the source; its path if left out.

    Raises:
        DataError: A column is missing, of the wrong type, or holds a value that its role
            does not allow; the first offending row and their number are named.
    """
    columns = [*schema.score_columns, *schema.context]
    truth = _truth_columns(source, schema) if labels else []
    if labels:
        columns += [*schema.names, *truth]
        columns += [name for name in (schema.request, schema.sample_weight) if name]
    frame = open_table(source, columns)
    check = _Check(name or describe(source), first_row)
    log = Log(
        schema=schema,
        scores=check.probabilities(frame, schema.score_columns, "Score"),
        # To select nothing would forget how many rows there are; to drop all does not.
        context=frame.select(schema.context) if schema.context else frame.drop(frame.columns),
    )
    if not labels:
        return log
    weight = schema.sample_weight
    return replace(
        log,
        labels=check.labels(frame, schema.names),
        request=_request(frame[schema.request]) if schema.request else None,
        sample_weight=check.sample_weight(frame[weight]) if weight else None,
        truth=check.probabilities(frame, truth, "Truth") if truth else None,
    )


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
    return series.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()


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
            self._refuse(frame[name], frame[name].is_between(0, 1), f"{column} must lie in [0, 1]")
        single = all(frame.schema[name] == pl.Float32 for name in columns)
        kind = pl.Float32 if single else pl.Float64
        return frame.select(pl.col(columns).cast(kind)).to_numpy(order="c")

    def labels(self, frame: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
        for name in columns:
            series, column = frame[name], self._column("Label", name)
            if series.dtype == pl.Boolean:
                allowed = series.is_not_null()
            else:
                self._numeric(series, column, "0 and 1")
                allowed = (series == 0) | (series == 1)
            self._refuse(series, allowed, f"{column} must be 0 or 1")
        return frame.select(pl.col(columns).cast(pl.UInt8)).to_numpy(order="c")

    def sample_weight(self, series: pl.Series) -> np.ndarray:
        column = self._column("Weight", series.name)
        self._numeric(series, column, "numbers from 0 up")
        allowed = series.is_between(0, float("inf"), closed="left")
        self._refuse(series, allowed, f"{column} must be finite and 0 or more")
        return series.cast(pl.Float64).to_numpy()

    def _numeric(self, series: pl.Series, column: str, expected: str) -> None:
        if not series.dtype.is_numeric():
            raise DataError(
                f"{column} must hold {expected}. Got type {series.dtype}; convert it first."
            )

    def _refuse(self, series: pl.Series, allowed: pl.Series, rule: str) -> None:
        allowed = allowed.fill_null(value=False)
        if allowed.all():
            return
        rows = (~allowed).arg_true()
        value = "null" if series[rows[0]] is None else series[rows[0]]
        raise DataError(
            f"{rule}. Got {value} in row {self.first_row + rows[0]:,} (counted from 0), "
            f"and {len(rows):,} such row{'s' * (len(rows) > 1)} in all; drop or repair them."
        )
