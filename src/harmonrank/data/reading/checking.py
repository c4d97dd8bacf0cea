"""Checking: what each role of a schema demands of its column."""

__all__ = ["LAST_PLACE", "TableCheck", "is_lost"]

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data.clock import clock_part, instants
from harmonrank.data.reading.faults import Faults
from harmonrank.data.scales import bounds_of, guess_scale
from harmonrank.data.schema import Schema
from harmonrank.support.errors import DataError

LAST_PLACE = 2**31 - 1
"""The last place of a request that a position may be."""


@dataclass(frozen=True)
class TableCheck:
    """Notes what is wrong with the columns of a table; a column that is missing is passed over.

    Attributes:
        faults: Where it is noted.
        first_row: Where the frame begins in a larger table.
        frame: The columns that are there.
    """

    faults: Faults
    first_row: int
    frame: pl.DataFrame

    def scores(self, schema: Schema) -> None:
        """Scores are numbers of their scale, or missing where the schema allows it."""
        for name, scale in zip(schema.score_columns, schema.scales, strict=True):
            if name in self.frame.columns:
                self._score(self.frame[name], scale, missing=schema.missing == "allow")

    def _score(self, series: pl.Series, scale: str, *, missing: bool) -> None:
        if missing and series.null_count() == len(series):
            return  # A column without a value has no type that counts.
        column, (low, high) = f"Score column '{series.name}'", bounds_of(scale)
        bounded = isfinite(high)
        between = f"[{low:g}, {high:g}]" if bounded else ""
        if not self._numeric(series, column, f"numbers in {between}" if bounded else "numbers"):
            return
        values = series.alias("")
        if missing and bounded and _all_within(values, low, high):
            return
        inside = (values >= low) & (values <= high) if bounded else _finite(values)
        inside = inside | is_lost(values) if missing else _known(series, inside)
        remedy = _question(series) if scale == "probability" and not inside.all() else None
        rule = f"must lie in {between}" if bounded else "must be finite"
        self._refuse(series, inside, column, rule, remedy)

    def probabilities(self, columns: Sequence[str]) -> None:
        """True probabilities are in [0, 1]."""
        for name in columns:
            series, column = self.frame[name], f"Truth column '{name}'"
            if self._numeric(series, column, "numbers in [0, 1]"):
                inside = _known(series, (series >= 0) & (series <= 1))
                self._refuse(series, inside, column, "must lie in [0, 1]")

    def contexts(self, context: Sequence[str]) -> None:
        """Contexts are text or numbers, and what has an hour is a time."""
        for name in context:
            part = None if name in self.frame.columns else clock_part(name)
            if part is None and name in self.frame.columns:
                self._category(self.frame[name])
            elif part is not None and part[0] in self.frame.columns:
                self._time(self.frame[part[0]], name)

    def _category(self, series: pl.Series) -> None:
        kind = series.dtype
        if isinstance(kind, pl.Date | pl.Datetime):
            remedy = f"name '{series.name}:hour' or '{series.name}:weekday' as context"
        elif kind.is_nested() or isinstance(kind, pl.Time | pl.Duration | pl.Binary):
            remedy = "convert it first"
        else:
            return
        column = f"Context column '{series.name}'"
        self.faults.add(column, f"must hold text or numbers. Got type {kind}; {remedy}.")

    def _time(self, series: pl.Series, entry: str) -> None:
        column = f"Column '{series.name}' for context '{entry}'"
        try:
            known = instants(series).is_not_null()
        except DataError as error:
            self.faults.add(column, f"is no time. {error}")
            return
        # A time that is missing is unknown, as any context value may be.
        self._refuse(series, known | is_lost(series), column, "must hold times")

    def request(self, name: str | None) -> None:
        """Requests are numbers or text."""
        if name in self.frame.columns and (kind := self.frame.schema[name]).is_nested():
            self.faults.add(
                f"Request column '{name}'",
                f"must hold numbers or text. Got type {kind}; convert it first.",
            )

    def labels(self, columns: Sequence[str], shown: np.ndarray | None = None) -> None:
        """Labels are 0 or 1; of a conditional objective where it is shown."""
        for name in columns:
            if name not in self.frame.columns:
                continue
            series, column = self.frame[name], f"Label column '{name}'"
            if series.dtype == pl.Boolean:
                allowed = series | ~series
            elif self._numeric(series, column, "0 and 1"):
                allowed = (series == 0) | (series == 1)
            else:
                continue
            self._refuse(series, _needed(series, allowed, shown), column, "must be 0 or 1")

    def grades(self, columns: Sequence[str], shown: np.ndarray | None = None) -> None:
        """Labels of graded objectives are finite numbers, where they are shown."""
        for name in columns:
            if name not in self.frame.columns:
                continue
            series, column = self.frame[name], f"Label column '{name}'"
            if self._numeric(series, column, "numbers, as it is graded"):
                allowed = _needed(series, _finite(series.alias("")), shown)
                self._refuse(series, allowed, column, "must be a finite number")

    def draws(self, columns: Sequence[str]) -> None:
        """The truth of a graded objective is a list of equally likely values, as long each."""
        for name in columns:
            series, column = self.frame[name], f"Truth column '{name}'"
            if not isinstance(series.dtype, pl.List | pl.Array):
                what = "must hold lists of equally likely values, as its objective is graded"
                self.faults.add(column, f"{what}. Got type {series.dtype}; convert it first.")
                continue
            lengths = series.cast(pl.List(pl.Float64)).list.len()
            same = _known(lengths, (lengths == lengths.max()) & (lengths > 0))
            self._refuse(lengths, same, column, "must hold lists of one length, from 1 up")

    def sample_weight(self, name: str | None) -> None:
        """Weights are finite numbers from 0 up, and so is their sum."""
        if name is None or name not in self.frame.columns:
            return
        series, column = self.frame[name], f"Weight column '{name}'"
        if not self._numeric(series, column, "numbers from 0 up"):
            return
        weight = series.alias("").cast(pl.Float64)
        allowed = _known(series, (weight >= 0) & _finite(weight))
        if not self._refuse(series, allowed, column, "must be finite and 0 or more"):
            return
        found = weight.to_numpy()
        if found.mean(dtype=np.longdouble) * len(found) > np.finfo(np.float64).max:
            self.faults.add(column, "has an infinite sum; divide all weights by the largest.")

    def position(self, name: str | None) -> None:
        """Places are whole numbers from 0 up; a row without one was not shown."""
        if name is None or name not in self.frame.columns:
            return
        series, column = self.frame[name], f"Position column '{name}'"
        if not self._numeric(series, column, "whole numbers from 0 up"):
            return
        place = series.alias("").cast(pl.Float64)
        allowed = (place >= 0) & (place <= LAST_PLACE) & (place.floor() == place)
        allowed = allowed | is_lost(series.alias(""))
        self._refuse(series, allowed, column, "must be a whole number from 0 up")

    def _numeric(self, series: pl.Series, column: str, expected: str) -> bool:
        if series.dtype.is_numeric():
            return True
        self.faults.add(column, f"must hold {expected}. Got type {series.dtype}; convert it first.")
        return False

    def _refuse(
        self,
        series: pl.Series,
        allowed: pl.Series,
        column: str,
        rule: str,
        remedy: str | None = None,
    ) -> bool:
        """Note the rows that are not allowed; tell whether there is none."""
        if allowed.all():
            return True
        rows = (~allowed).arg_true()
        value = "null" if series[rows[0]] is None else series[rows[0]]
        self.faults.add(
            column,
            f"{rule}. Got {value} in row {self.first_row + rows[0]:,} (counted from 0), and "
            f"{len(rows):,} such row{'s' * (len(rows) > 1)} in all; "
            f"{remedy or 'drop or repair them'}.",
        )
        return False


def _finite(values: pl.Series) -> pl.Series:
    values = values.cast(pl.Float64)
    return (values > -np.inf) & (values < np.inf)


def _all_within(values: pl.Series, low: float, high: float) -> bool:
    """Tell in two fast passes whether all values but null and NaN lie between two bounds."""
    least: Any = values.min()
    most: Any = values.max()
    return least is not None and least >= low and most <= high


def _known(series: pl.Series, allowed: pl.Series) -> pl.Series:
    # Not `fill_null`, which needs Polars' threads. Without its name, which may be a pattern.
    return allowed & series.alias("").is_not_null()


def _needed(series: pl.Series, allowed: pl.Series, shown: np.ndarray | None) -> pl.Series:
    """Return where a label is allowed or, as its row does not show it, not looked at."""
    allowed = _known(series, allowed)
    if shown is None:
        return allowed
    fine = allowed.cast(pl.Float64).to_numpy() == 1  # null becomes NaN
    return pl.Series("", fine | ~shown)


def is_lost(values: pl.Series) -> pl.Series:
    """Return where a number is null or NaN."""
    return values.is_null() | values.is_nan() if values.dtype.is_float() else values.is_null()


def _question(series: pl.Series) -> str | None:
    """Return what to do about scores that look like those of another scale, if they do."""
    values = series.cast(pl.Float64).to_numpy()
    scale = guess_scale(values)
    if scale == "probability":
        return None
    finite = values[np.isfinite(values)]
    like = "no probability" if scale == "any" else scale
    return (
        f"{series.name} looks like {like}: {finite.min():.3g} … {finite.max():.3g}; add scale "
        f"{series.name}={scale}"
    )
