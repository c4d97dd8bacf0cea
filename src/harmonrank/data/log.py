"""Log: the checked columns of a table as arrays."""

__all__ = ["Log", "read_log"]

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

        def of(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[index]

        return replace(
            self,
            scores=self.scores[index],
            context=self.context[index],
            labels=of(self.labels),
            request=of(self.request),
            sample_weight=of(self.sample_weight),
            truth=of(self.truth),
        )

    def require_both_classes(self, purpose: str) -> None:
        """Refuse an objective that has no positive or no negative label."""
        positives = self.known_labels().sum(axis=0, dtype=np.int64)
        for name, count in zip(self.schema.names, positives, strict=True):
            if count in (0, self.rows):
                missing = "positive" if count == 0 else "negative"
                raise DataError(
                    f"Objective '{name}' has no {missing} label among the {self.rows:,} {purpose} "
                    "rows, so its ranking has no meaning there; add rows or leave it out."
                )


def read_log(
    source: Source, schema: Schema, *, labels: bool = True, request: bool | None = None
) -> Log:
    """Read and check the columns that a schema names.

    Args:
        source: A path or a polars, pandas or pyarrow table.
        schema: Which column is what.
        labels: Also read labels, sample weights and, where there, true probabilities.
        request: Also read the request column; by default just when labels are read.

    Raises:
        DataError: A column is missing, of the wrong type, or holds a value that its role
            does not allow; the first offending row and their number are named.
    """
    with_request = schema.request is not None and (labels if request is None else request)
    columns = [*schema.score_columns, *schema.context]
    columns += [schema.request] if with_request and schema.request else []
    has_truth = False
    if labels:
        columns += schema.names
        columns += [schema.sample_weight] if schema.sample_weight else []
        has_truth = bool(schema.truth) and set(schema.truth.values()) <= set(column_names(source))
        columns += schema.truth.values() if has_truth else ()
    frame = open_table(source, columns)
    where = describe(source)
    truth_columns = [schema.truth[name] for name in schema.names] if has_truth else []
    return Log(
        schema=schema,
        scores=_probabilities(frame, schema.score_columns, "Score", where),
        context=frame.select(schema.context),
        labels=_labels(frame, schema.names, where) if labels else None,
        request=_request(frame[schema.request]) if with_request and schema.request else None,
        sample_weight=_sample_weight(frame, schema, where) if labels else None,
        truth=_probabilities(frame, truth_columns, "Truth", where) if has_truth else None,
    )


def _probabilities(
    frame: pl.DataFrame, columns: Sequence[str], role: str, where: str
) -> np.ndarray:
    for name in columns:
        series = _numeric(frame[name], f"{role} column '{name}' of {where}", "numbers in [0, 1]")
        allowed = series.is_between(0, 1)
        _refuse(series, allowed, f"{role} column '{name}' of {where} must lie in [0, 1]")
    single = all(frame.schema[name] == pl.Float32 for name in columns)
    return frame.select(pl.col(columns).cast(pl.Float32 if single else pl.Float64)).to_numpy(
        order="c"
    )


def _labels(frame: pl.DataFrame, columns: Sequence[str], where: str) -> np.ndarray:
    for name in columns:
        series = frame[name]
        if series.dtype != pl.Boolean:
            series = _numeric(series, f"Label column '{name}' of {where}", "0 and 1")
            allowed = (series == 0) | (series == 1)
            _refuse(series, allowed, f"Label column '{name}' of {where} must be 0 or 1")
        elif series.null_count():
            _refuse(series, series.is_not_null(), f"Label column '{name}' of {where} must be 0/1")
    return frame.select(pl.col(columns).cast(pl.UInt8)).to_numpy(order="c")


def _sample_weight(frame: pl.DataFrame, schema: Schema, where: str) -> np.ndarray | None:
    if schema.sample_weight is None:
        return None
    name = schema.sample_weight
    series = _numeric(frame[name], f"Weight column '{name}' of {where}", "numbers from 0 up")
    allowed = series.is_between(0, float("inf"), closed="left")
    _refuse(series, allowed, f"Weight column '{name}' of {where} must be finite and 0 or more")
    return series.cast(pl.Float64).to_numpy()


def _request(series: pl.Series) -> np.ndarray:
    # Only equality of requests matters, so text becomes numbers.
    if series.dtype.is_integer() and not series.null_count():
        return series.cast(pl.Int64).to_numpy()
    return series.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()


def _numeric(series: pl.Series, what: str, expected: str) -> pl.Series:
    if not series.dtype.is_numeric():
        raise DataError(f"{what} must hold {expected}. Got type {series.dtype}; convert it first.")
    return series


def _refuse(series: pl.Series, allowed: pl.Series, rule: str) -> None:
    allowed = allowed.fill_null(value=False)
    if not allowed.all():
        rows = (~allowed).arg_true()
        first = rows[0]
        value = "null" if series[first] is None else series[first]
        raise DataError(
            f"{rule}. Got {value} in row {first} (counted from 0), "
            f"and {len(rows):,} such row{'s' * (len(rows) > 1)} in all; drop or repair them."
        )
