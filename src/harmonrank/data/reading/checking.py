"""Checking: what each role of a schema demands of its column."""

__all__ = ["TableCheck", "is_lost"]

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data.clock import clock_part, instants
from harmonrank.data.reading.tables import Faults, offence
from harmonrank.data.scales import bounds_of, guess_scale
from harmonrank.data.schema import Schema
from harmonrank.data.values import LAST_PLACE
from harmonrank.support.errors import DataError


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
                self._score(name, scale, missing=schema.missing == "allow")

    def _score(self, name: str, scale: str, *, missing: bool) -> None:
        if missing and self.frame[name].null_count() == self.frame.height:
            return  # A column without a value has no type that counts.
        column, (low, high) = f"Score column '{name}'", bounds_of(scale)
        bounded = isfinite(high)
        between = f"[{low:g}, {high:g}]" if bounded else ""
        values = self._numbers(column, name, f"numbers in {between}" if bounded else "numbers")
        if values is None or (missing and bounded and _all_within(values, low, high)):
            return
        inside = (values >= low) & (values <= high) if bounded else _finite(values)
        inside = inside | is_lost(values) if missing else _known(inside)
        remedy = _question(name, values) if scale == "probability" and not inside.all() else ""
        rule = f"must lie in {between}" if bounded else "must be finite"
        self._refuse(column, values, inside, rule, remedy)

    def probabilities(self, columns: Sequence[str]) -> None:
        """True probabilities are in [0, 1]."""
        for name in columns:
            column = f"Truth column '{name}'"
            values = self._numbers(column, name, "numbers in [0, 1]")
            if values is not None:
                self._refuse(column, values, (values >= 0) & (values <= 1), "must lie in [0, 1]")

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
        self._refuse(column, series, known | is_lost(series), "must hold times")

    def time(self, name: str | None) -> None:
        """Times are of a type that can tell them; one may be missing."""
        if name is None:
            return
        try:
            instants(self.frame[name])
        except DataError as error:
            self.faults.add(f"Time column '{name}'", f"is no time. {error}")

    def ids(self, role: str, name: str | None) -> None:
        """Requests and users are numbers or text."""
        if name in self.frame.columns and (kind := self.frame.schema[name]).is_nested():
            self.faults.add(
                f"{role} column '{name}'",
                f"must hold numbers or text. Got type {kind}; convert it first.",
            )

    def labels(self, columns: Sequence[str], shown: np.ndarray | None = None) -> None:
        """Labels are 0 or 1; of a conditional objective where it is shown."""
        for name in columns:
            column = f"Label column '{name}'"
            values = self._numbers(column, name, "0 and 1", boolean=True)
            if values is not None:
                allowed = _needed((values == 0) | (values == 1), shown)
                self._refuse(column, values, allowed, "must be 0 or 1")

    def grades(self, columns: Sequence[str], shown: np.ndarray | None = None) -> None:
        """Labels of graded objectives are finite numbers, where they are shown."""
        for name in columns:
            column = f"Label column '{name}'"
            values = self._numbers(column, name, "numbers, as it is graded")
            if values is not None:
                allowed = _needed(_finite(values), shown)
                self._refuse(column, values, allowed, "must be a finite number")

    def draws(self, columns: Sequence[str]) -> None:
        """The truth of a graded objective is a list of equally likely values, as long each."""
        for name in columns:
            series, column = self.frame[name], f"Truth column '{name}'"
            if not isinstance(series.dtype, pl.List | pl.Array):
                what = "must hold lists of equally likely values, as its objective is graded"
                self.faults.add(column, f"{what}. Got type {series.dtype}; convert it first.")
                continue
            lengths = series.cast(pl.List(pl.Float64)).list.len()
            same = (lengths == lengths.max()) & (lengths > 0)
            self._refuse(column, lengths, same, "must hold lists of one length, from 1 up")

    def sample_weight(self, name: str | None) -> None:
        """Weights are finite numbers from 0 up, and so is their sum."""
        column = f"Weight column '{name}'"
        values = self._numbers(column, name, "numbers from 0 up")
        if values is None:
            return
        weight = values.cast(pl.Float64)
        if self._refuse(
            column, values, (weight >= 0) & _finite(weight), "must be finite and 0 or more"
        ):
            numbers = weight.to_numpy()
            if numbers.mean(dtype=np.longdouble) * len(numbers) > np.finfo(np.float64).max:
                self.faults.add(column, "has an infinite sum; divide all weights by the largest.")

    def position(self, name: str | None) -> None:
        """Places are whole numbers from 0 up; a row without one was not shown."""
        column = f"Position column '{name}'"
        values = self._numbers(column, name, "whole numbers from 0 up")
        if values is not None:
            position = values.cast(pl.Float64)
            allowed = (position >= 0) & (position <= LAST_PLACE) & (position.floor() == position)
            rule = "must be a whole number from 0 up"
            self._refuse(column, values, allowed | is_lost(values), rule)

    def _numbers(
        self, column: str, name: str | None, expected: str, *, boolean: bool = False
    ) -> pl.Series | None:
        """Return the numbers of a column without its name, which may be a pattern to Polars.

        None if the column is not there, or holds something else, which is noted.
        """
        if name is None or name not in self.frame.columns:
            return None
        values = self.frame[name].alias("")
        if boolean and values.dtype == pl.Boolean:
            return values.cast(pl.UInt8)
        if values.dtype.is_numeric():
            return values
        self.faults.add(column, f"must hold {expected}. Got type {values.dtype}; convert it first.")
        return None

    def _refuse(
        self, column: str, values: pl.Series, allowed: pl.Series, rule: str, remedy: str = ""
    ) -> bool:
        """Note the rows that are not allowed, or of which it is null; tell if there is none."""
        allowed = _known(allowed)
        if allowed.all():
            return True
        rows = (~allowed).arg_true()
        self.faults.add(column, f"{rule}. {offence(values, rows, self.first_row, remedy)}")
        return False


def _finite(values: pl.Series) -> pl.Series:
    values = values.cast(pl.Float64)
    return (values > -np.inf) & (values < np.inf)


def _all_within(values: pl.Series, low: float, high: float) -> bool:
    """Tell in two fast passes whether all values but null and NaN lie between two bounds."""
    least: Any = values.min()
    most: Any = values.max()
    return least is not None and least >= low and most <= high


def _known(allowed: pl.Series) -> pl.Series:
    # Not `fill_null`, which needs Polars' threads.
    return allowed & allowed.is_not_null()


def _needed(allowed: pl.Series, shown: np.ndarray | None) -> pl.Series:
    """Return where a label is allowed or, as its row does not show it, not looked at."""
    if shown is None:
        return allowed
    fine = allowed.cast(pl.Float64).to_numpy() == 1  # null becomes NaN
    return pl.Series("", fine | ~shown)


def is_lost(values: pl.Series) -> pl.Series:
    """Return where a number is null or NaN."""
    return values.is_null() | values.is_nan() if values.dtype.is_float() else values.is_null()


def _question(name: str, series: pl.Series) -> str:
    """Return what to do about scores that look like those of another scale, if they do."""
    values = series.cast(pl.Float64).to_numpy()
    scale = guess_scale(values)
    if scale == "probability":
        return ""
    finite = values[np.isfinite(values)]
    like = "no probability" if scale == "any" else scale
    return (
        f"{name} looks like {like}: {finite.min():.3g} … {finite.max():.3g}; add scale "
        f"{name}={scale}"
    )
