"""Baseline: what ranks today, as a column of the test table or a formula over its columns."""

__all__ = ["TODAY", "Baseline"]

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import polars as pl

from harmonrank.data import Log, Source, open_table
from harmonrank.data.expressions import Expression
from harmonrank.data.log import taken
from harmonrank.data.reading.tables import check_columns, column_names, describe
from harmonrank.evaluation.entry import Entry, entry_of
from harmonrank.fusion import quality_of
from harmonrank.fusion.quality.value_at_k import value_of
from harmonrank.support.errors import DataError, UsageError, did_you_mean, shown

TODAY = "today"
"""The name of the baseline in a leaderboard."""


@dataclass(frozen=True)
class Baseline:
    """The score of every test row by what is in production.

    Attributes:
        text: The column's name, or the formula.
        scores: (rows,) one per row of the test table.
        formula: Whether the text is a formula.
        filled: Of a column that lacks values, in how many rows; its median stands in for them.
    """

    text: str
    scores: np.ndarray = field(repr=False)
    formula: bool = False
    filled: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, named: "str | Baseline | None", source: Source, rows: np.ndarray | None = None
    ) -> "Baseline | None":
        """Return a baseline as it is, and read one that is named."""
        if named is None or isinstance(named, Baseline):
            return named
        return cls.read(source, named, rows)

    @classmethod
    def read(cls, source: Source, text: str, rows: np.ndarray | None = None) -> Self:
        """Read a column, or compute a formula from the table's columns as they are.

        Of a `Log` only the score columns are known.

        Args:
            source: The test table, or one that the test rows are some of.
            text: The name or the formula.
            rows: The row numbers of the test rows; all if left out.

        Raises:
            DataError: A column is missing, or not of numbers; or a row has no finite score.
            UsageError: The text is neither a column nor a formula.
        """
        if not isinstance(text, str):
            raise UsageError(
                "`baseline` must be a column's name, a formula over columns, or a Baseline. "
                f"Got {shown(text)}."
            )
        table, there, name = _table(source)
        column = text.strip()
        formula = None if column in there else _formula(column, there, name)
        wanted = (column,) if formula is None else formula.names
        check_columns(table, there, wanted)
        frame = open_table(table, wanted)
        frame = frame if rows is None else taken(frame, rows)
        values: dict[str, np.ndarray] = {}
        filled: dict[str, int] = {}
        for each in wanted:
            values[each], count = _numbers(frame[each], each, name)
            filled |= {each: count} if count else {}
        scores = values[column] if formula is None else formula.values(values)
        _require_finite(scores, column, name)
        return cls(column, scores, formula is not None, filled)

    @property
    def words(self) -> str:
        """What a sentence calls it."""
        return "today's formula" if self.formula else "today's score"

    @property
    def note(self) -> str | None:
        """Say where a median stood in."""
        if not self.filled:
            return None
        gaps = ", ".join(f"{name} in {count:,} rows" for name, count in self.filled.items())
        return f"{TODAY}: no value of {gaps}; the column's median stands in."

    def entry(
        self,
        log: Log,
        weights: np.ndarray | None = None,
        prevalence: np.ndarray | None = None,
        value: np.ndarray | None = None,
        k: int = 10,
    ) -> Entry:
        """Measure it on the log of the same table, as a method is measured.

        Args:
            log: With labels; rows of weight 0 do not count.
            weights: Of the objectives; those of the schema if left out.
            prevalence: Of the training rows, for the effective weights.
            value: What an event is worth, where value at k is asked for; else as in the schema.
            k: Events among how many of a request.
        """
        fused, rows = self.counted(log), log.counted()
        chosen = log.schema.weight_vector if weights is None else weights
        quality = quality_of(fused, rows, chosen, prevalence)
        worth = log.schema.values_with(None) if value is None else value
        if worth is not None:
            quality = replace(quality, value=value_of(fused, rows, worth, k, ranked=False))
        return entry_of(TODAY, fused, rows, quality, k=k)

    def counted(self, log: Log) -> np.ndarray:
        """Return the scores of the rows that count in the log of the same table."""
        if len(self.scores) != log.rows:
            raise DataError(
                f"The baseline must have one score per test row, {log.rows:,}. Got "
                f"{len(self.scores):,}; read both from the same table."
            )
        weight = log.sample_weight
        return self.scores if weight is None or weight.all() else self.scores[weight > 0]

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON of a comparison says of it."""
        return {"name": TODAY, "score": self.text, "filled": dict(self.filled)}


def _table(source: Source) -> tuple[Source, list[str], str]:
    """Return what can be read, its columns, and what errors call it."""
    if isinstance(source, Log):
        columns = source.schema.score_columns
        series = [pl.Series(name, source.scores[:, m]) for m, name in enumerate(columns)]
        source = pl.DataFrame(series)
    return source, column_names(source), describe(source)


def _formula(text: str, there: list[str], name: str) -> Expression:
    formula = Expression.parse(text)
    for each in formula.names:
        if each not in there:
            raise DataError(
                f"{name} has no column '{each}', which the baseline {shown(text)} names. "
                f"{did_you_mean(each, there)}"
            )
    if not formula.names:
        raise UsageError(
            f"The baseline {shown(text)} names no column, so it ranks nothing; name at least one."
        )
    return formula


def _numbers(series: pl.Series, column: str, name: str) -> tuple[np.ndarray, int]:
    """Return a column as numbers, its median where it has none, and in how many rows that is."""
    if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
        raise DataError(
            f"Column '{column}' of {name}, which the baseline names, must hold numbers. Got type "
            f"{series.dtype}; convert it first."
        )
    values = series.cast(pl.Float64).to_numpy()  # null becomes NaN
    missing = np.isnan(values)
    count = int(missing.sum())
    if count == len(values):
        raise DataError(f"Column '{column}' of {name} has no value in any row; name another.")
    if count:
        values = np.where(missing, np.median(values[~missing]), values)
    return values, count


def _require_finite(scores: np.ndarray, text: str, name: str) -> None:
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        raise DataError(
            f"The baseline {shown(text)} is {scores[wrong[0]]} in row {wrong[0]:,} of {name} "
            f"(counted from 0), and not finite in {len(wrong):,} rows in all; add a small number "
            "where it divides or takes a logarithm."
        )
