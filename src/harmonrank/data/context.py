"""ContextEncoder: context columns to small whole numbers, with a slot for the unknown."""

__all__ = [
    "QUANTILE_ROWS",
    "UNKNOWN",
    "ContextEncoder",
    "Counts",
    "added_counts",
    "value_counts",
]

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Self

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta

from harmonrank.data.rows.blocks import drawn_rows
from harmonrank.support.errors import DataError, shown
from harmonrank.support.storage.decoding import decode

UNKNOWN = 0
"""The code of a null and of every value that training did not see."""

QUANTILE_ROWS = 500_000
"""Quantiles of fractions are those of at most so many rows, drawn at random."""

_MOST_VALUES = 1000
_MOST_COUNTED = 1_000_000
_QUANTILES = 32
_MOST_DENSE = 1 << 20
_TILE_ROWS = 8192


class _Feature(msgspec.Struct, frozen=True, dict=True, tag_field="kind"):
    """One context column, which is stored as it is."""

    name: str
    values: tuple[Any, ...]

    @property
    def kind(self) -> str:
        """Which of the kinds below."""
        return str(self.__struct_config__.tag)

    @property
    def slots(self) -> int:
        """How many codes there are, that of the unknown included."""
        return len(self.values) + 1

    def encode(self, series: pl.Series) -> np.ndarray:
        """Return the codes of a column."""
        if series.null_count() == len(series) or self.slots == 1:
            return np.full(len(series), UNKNOWN, dtype=np.int32)
        self._check(series)
        return self._encoded(series)

    def _encoded(self, series: pl.Series) -> np.ndarray:
        raise NotImplementedError

    def _check(self, series: pl.Series) -> None:
        kind = _kind(series.dtype)
        # Whole numbers and fractions are told apart by the values, as pandas turns a column of
        # whole numbers into fractions as soon as one is missing.
        if kind != self.kind and {kind, self.kind} != {"integer", "number"}:
            raise DataError(
                f"Context column '{self.name}' was {self.kind} in training. Got type "
                f"{series.dtype}; convert it to the type of the training table."
            )

    def grown(self, series: pl.Series, most_values: int) -> "Feature":
        """Return a feature that knows newer values too."""
        if series.null_count() == len(series):
            return self  # type: ignore[return-value]
        if not self.values:
            return _fit_feature(series.alias(self.name), most_values)
        self._check(series)
        return self._with_values(series, most_values)

    def _with_values(self, series: pl.Series, most_values: int) -> "Feature":
        new = _counted(series, self.kind).filter(~pl.col("value").is_in(list(self.values)))
        room = max(most_values - len(self.values), 0)
        values = tuple(sorted([*self.values, *new["value"].head(room)]))
        return type(self)(self.name, values)  # type: ignore[return-value]

    def recoding(self, older: "_Feature") -> np.ndarray:
        """Return the code that each code of an older feature has now."""
        return np.array([UNKNOWN, *(self._codes[value] for value in older.values)])

    def encode_value(self, value: Any) -> int:
        """Return the code of one value, the same as in a column, without making one."""
        if value is None or self.slots == 1:
            return UNKNOWN
        if isinstance(value, str) != (self.kind == "text"):
            raise DataError(
                f"Context value '{self.name}' was {self.kind} in training. Got {shown(value)}; "
                "convert it to the type of the training table."
            )
        return self._code(value)

    def _code(self, value: Any) -> int:
        return self._codes.get(value, UNKNOWN)

    @cached_property
    def _codes(self) -> dict[Any, int]:
        return {value: code for code, value in enumerate(self.values, 1)}

    def label(self, code: int) -> str:
        """Return how a person would name a code that is known."""
        return str(self.values[code - 1])


class TextFeature(_Feature, frozen=True, dict=True, tag="text", forbid_unknown_fields=True):
    """A column of text, whose values are categories."""

    values: tuple[str, ...]

    def _encoded(self, series: pl.Series) -> np.ndarray:
        known = series.cast(pl.String).cast(pl.Enum(list(self.values)), strict=False)
        codes = known.to_physical().cast(pl.Int32) + 1
        return _filled(codes, UNKNOWN).to_numpy()


class IntegerFeature(_Feature, frozen=True, dict=True, tag="integer", forbid_unknown_fields=True):
    """A column of whole numbers, which are categories too."""

    values: tuple[Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)], ...]

    def _encoded(self, series: pl.Series) -> np.ndarray:
        known, whole = np.array(self.values, dtype=np.int64), _whole(series)
        raw = _filled(whole, 0).to_numpy()
        if self._dense is not None:
            # Values on either side of the known ones meet the table's ends, which are unknown.
            low, high = known[0] - 1, known[-1] + 1
            codes = np.empty(len(raw), np.int32)
            # A few rows at a time, so that what is made on the way stays in the cache.
            for first in range(0, len(raw), _TILE_ROWS):
                tile = slice(first, first + _TILE_ROWS)
                codes[tile] = self._dense[np.clip(raw[tile], low, high) - low]
        else:
            place = np.minimum(np.searchsorted(known, raw), len(known) - 1)
            codes = np.where(known[place] == raw, place + 1, UNKNOWN).astype(np.int32)
        if whole.null_count():
            codes = np.where(whole.is_not_null().to_numpy(), codes, UNKNOWN)
        return codes

    @cached_property
    def _dense(self) -> np.ndarray | None:
        """The code of every whole number in reach of the known ones, if they lie close."""
        low, high = self.values[0], self.values[-1]
        if high - low >= _MOST_DENSE or abs(low) > _MOST_DENSE:
            return None
        codes = np.full(high - low + 3, UNKNOWN, dtype=np.int32)
        codes[np.array(self.values) - low + 1] = np.arange(1, len(self.values) + 1)
        return codes


class NumberFeature(_Feature, frozen=True, dict=True, tag="number", forbid_unknown_fields=True):
    """A column of numbers, cut at the inner edges of its quantiles, which are the values."""

    values: tuple[float, ...]

    @property
    def slots(self) -> int:
        """How many codes there are, that of the unknown included."""
        return len(self.values) + 2

    def _encoded(self, series: pl.Series) -> np.ndarray:
        raw = series.cast(pl.Float64).to_numpy()  # null becomes NaN
        place = np.searchsorted(np.array(self.values, dtype=np.float64), raw, side="right") + 1
        return np.where(np.isnan(raw), UNKNOWN, place).astype(np.int32)

    def _with_values(self, series: pl.Series, most_values: int) -> "Feature":  # noqa: ARG002
        return self

    def recoding(self, older: _Feature) -> np.ndarray:
        """Return the code that each code of an older feature has now."""
        return np.arange(older.slots)

    def _code(self, value: Any) -> int:
        return UNKNOWN if value != value else bisect_right(self.values, value) + 1

    def label(self, code: int) -> str:
        """Return how a person would name a code that is known."""
        low = f"{self.values[code - 2]:g}" if code > 1 else "-inf"
        high = f"{self.values[code - 1]:g}" if code <= len(self.values) else "inf"
        return f"[{low}, {high})"


Feature = TextFeature | IntegerFeature | NumberFeature


@dataclass(frozen=True)
class ContextEncoder:
    """Gives every context value a code; code 0 is the slot of the unknown.

    >>> encoder = ContextEncoder.fit(pl.DataFrame({"age": ["old", "young", "old"]}))
    >>> encoder.encode(pl.DataFrame({"age": ["young", "ageless", None]})).ravel()
    array([2, 0, 0], dtype=int32)
    """

    features: tuple[Feature, ...]

    @property
    def slots(self) -> tuple[int, ...]:
        """How many codes each feature has, the unknown one included."""
        return tuple(feature.slots for feature in self.features)

    @property
    def names(self) -> tuple[str, ...]:
        """The context columns."""
        return tuple(feature.name for feature in self.features)

    @classmethod
    def fit(cls, frame: pl.DataFrame, most_values: int = _MOST_VALUES) -> Self:
        """Learn the values of each column, the most frequent where there are more than that."""
        return cls(tuple(_fit_feature(series, most_values) for series in frame))

    @classmethod
    def of_counts(
        cls,
        counts: Sequence["Counts"],
        frame: pl.DataFrame,
        most_values: int = _MOST_VALUES,
        ordered: Sequence[str] = (),
    ) -> Self:
        """Learn from how many rows have each value; of columns that are not counted, from a frame.

        Args:
            counts: Of every column, as `value_counts` gives them; None of a column of fractions.
            frame: The rows of `drawn_rows`, which the quantiles of fractions are taken of.
            most_values: As for `fit`.
            ordered: Columns of whole numbers that are cut into parts, as fractions are.
        """
        pairs = [
            (series.cast(pl.Float64) if series.name in ordered else series, known)
            for series, known in zip(frame, counts, strict=True)
        ]
        return cls(tuple(_fit_feature(series, most_values, known) for series, known in pairs))

    def grown(self, frame: pl.DataFrame, most_values: int = _MOST_VALUES) -> Self:
        """Return an encoder that knows the values of newer rows too, and has forgotten none.

        Of new values the most frequent are added, up to `most_values` in all. The quantiles of a
        number stay where they are.
        """
        return type(self)(
            tuple(f.grown(frame[f.name].alias("value"), most_values) for f in self.features)
        )

    def recoding(self, older: Self) -> list[np.ndarray]:
        """Return, by feature, the code that each code of the encoder has that this one grew from.

        >>> older = ContextEncoder.fit(pl.DataFrame({"age": [20, 40]}))
        >>> older.grown(pl.DataFrame({"age": [30, 40]})).recoding(older)
        [array([0, 1, 3])]
        """
        pairs = zip(self.features, older.features, strict=True)
        return [feature.recoding(before) for feature, before in pairs]

    def encode(self, frame: pl.DataFrame, rows: int | None = None) -> np.ndarray:
        """Return the codes, (rows, features) int32; a frame without columns knows no rows."""
        rows = frame.height if rows is None else rows
        codes = np.empty((rows, len(self.features)), dtype=np.int32)
        for column, feature in enumerate(self.features):
            codes[:, column] = feature.encode(frame[feature.name].alias("value"))
        return codes

    def encode_values(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return the codes of one context, (features,) int32; a value may be None.

        >>> encoder = ContextEncoder.fit(pl.DataFrame({"age": ["old", "young", "old"]}))
        >>> encoder.encode_values({"age": "young"})
        array([2], dtype=int32)
        """
        try:
            codes = [feature.encode_value(values[feature.name]) for feature in self.features]
        except KeyError as error:
            raise DataError(
                f"The context lacks {error}; name all of {', '.join(self.names)}, "
                "with None where a value is not known."
            ) from None
        return np.array(codes, dtype=np.int32)

    def label(self, feature: int, code: int) -> str:
        """Return how a person would name a code, for tables and plots."""
        return "unknown" if code == UNKNOWN else self.features[feature].label(code)

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads, as plain values."""
        parts: dict[str, Any] = msgspec.to_builtins(self)
        return parts

    def require_columns(self, columns: Sequence[str]) -> None:
        """Refuse an encoder of other columns."""
        if list(self.names) != list(columns):
            raise DataError(f"`context` must be of {list(columns)}, got {list(self.names)}")

    @classmethod
    def from_dict(cls, parts: Any) -> Self:
        """Build an encoder from what `to_dict` returned.

        Raises:
            DataError: Something else was, or values are repeated or out of order.
        """
        encoder = decode(parts, cls, "The context")
        for part in encoder.features:
            values: Sequence[Any] = part.values
            rising = all(a < b for a, b in pairwise(values))
            if len(set(values)) < len(values) or not (rising or isinstance(part, TextFeature)):
                raise DataError(f"values of context column '{part.name}' must be distinct and rise")
        return encoder


def _kind(dtype: pl.DataType) -> str:
    if dtype.is_integer() or dtype == pl.Boolean:
        return "integer"
    if dtype.is_numeric():
        return "number"
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return "text"
    return str(dtype)


def _filled(series: pl.Series, value: int) -> pl.Series:
    """Return the series without nulls; unlike `fill_null` it needs none of Polars' threads."""
    return series.set(series.is_null(), value) if series.null_count() else series


def _whole(series: pl.Series) -> pl.Series:
    """Return int64, null where a value is not whole; a hash beyond int64 keeps its bits."""
    if series.dtype == pl.UInt64:
        return series.reinterpret(signed=True)
    if series.dtype.is_float():
        series = series.set(series != series.floor(), None)
    return series.cast(pl.Int64, strict=False)


Counts = pl.DataFrame | None
"""The values of a column and how many rows have each; None where it is not counted."""


def value_counts(frame: pl.DataFrame) -> list[Counts]:
    """Return how many rows have each value of each column; None of fractions, and of no values."""
    return [
        _counted(series.alias("value"), _kind(series.dtype))
        if _kind(series.dtype) in ("integer", "text")
        else None
        for series in frame
    ]


def added_counts(a: Counts, b: Counts) -> Counts:
    """Return the counts of both; of more values than `_MOST_COUNTED`, those of the frequent ones.

    A value that is left out again and again may be counted short by as many rows as the others of
    its rank have: far below what one needs to be kept by a fit.
    """
    if a is None or b is None:
        return a if b is None else b
    both = pl.concat([a, b]).group_by("value").agg(pl.col("count").sum())
    ordered = both.sort(["count", "value"], descending=[True, False])
    return ordered.head(_MOST_COUNTED)


def _fit_feature(series: pl.Series, most_values: int, known: Counts = None) -> Feature:
    kind, name = _kind(series.dtype), series.name
    series = series.alias("value")  # its own name may be a pattern to polars
    if series.dtype == pl.Null:
        return TextFeature(name, ())
    if kind == "number":
        some = series.gather(drawn_rows(len(series), QUANTILE_ROWS))
        finite = some.cast(pl.Float64).drop_nulls().to_numpy()
        finite = finite[np.isfinite(finite)]
        shares = np.linspace(0, 1, _QUANTILES + 1)[1:-1]
        edges = np.unique(np.quantile(finite, shares)) if len(finite) else np.empty(0)
        return NumberFeature(name, tuple(edges.tolist()))
    if kind not in ("integer", "text"):
        raise DataError(
            f"Context column '{name}' must hold text or numbers. Got type {series.dtype}; "
            "convert it first."
        )
    counts = _counted(series, kind) if known is None else known
    kept = counts["value"].head(most_values).sort()
    values = tuple(kept.to_list())
    return TextFeature(name, values) if kind == "text" else IntegerFeature(name, values)


def _counted(series: pl.Series, kind: str) -> pl.DataFrame:
    """Return the values of a column and how many rows have each, the most frequent first."""
    values = (_whole(series) if kind == "integer" else series.cast(pl.String)).drop_nulls()
    counts = values.value_counts(name="count")
    return counts.sort(["count", "value"], descending=[True, False])
