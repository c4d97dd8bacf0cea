"""Side: users or items, each with an ID and features, as rows of codes."""

__all__ = ["IdCodes", "Side", "SideFields", "spread", "typed"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Self

import numpy as np
import polars as pl
from msgspec import Meta

from harmonrank.data import ContextEncoder
from harmonrank.support import DataError
from harmonrank.support.storage import Array
from harmonrank_lab.upstream.logs import FeatureTable

_MOST_DENSE = 1 << 25
_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)

_MOST_VALUES = 1000


def spread(ids: np.ndarray | pl.Series) -> np.ndarray:
    """Return a hash of whole numbers in 32 bits, by Fibonacci's multiplication."""
    whole = np.asarray(ids).astype(np.int64).view(np.uint64)
    return np.asarray((whole * _FIBONACCI) >> np.uint64(32))


@dataclass(frozen=True)
class IdCodes:
    """Gives IDs their codes: 0 is the unknown, then come known IDs, then shared rows.

    Attributes:
        known: IDs with a row of their own, ascending.
        shared: Rows that all other IDs are hashed to; with none, they are the unknown.

    >>> codes = IdCodes.fit(np.array([7, 9]), np.array([3, 1]), most=10)
    >>> codes.encode(np.array([9, 8, 7])).tolist()
    [2, 0, 1]
    """

    known: Annotated[np.ndarray, Array(("ids",), "int64", strictly=True, least=0)]
    shared: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0

    @classmethod
    def fit(cls, ids: np.ndarray, counts: np.ndarray, most: int) -> Self:
        """Give each ID a row; beyond `most`, the rarest are hashed to a quarter of the rows."""
        if len(ids) <= most:
            return cls(np.sort(ids).astype(np.int64))
        shared = max(most // 4, 1)
        kept = np.argsort(-counts, kind="stable")[: most - shared]
        return cls(np.sort(ids[kept]).astype(np.int64), shared)

    @property
    def slots(self) -> int:
        """How many codes there are, the unknown one included."""
        return 1 + len(self.known) + self.shared

    def encode(self, ids: np.ndarray) -> np.ndarray:
        """Return the code of each ID, int32."""
        place = self.find(ids)
        other = np.zeros(len(ids), np.int32)
        if self.shared:
            other = 1 + len(self.known) + (spread(ids) % np.uint64(self.shared)).astype(np.int32)
        return np.where(place >= 0, place + 1, other).astype(np.int32)

    def find(self, ids: np.ndarray) -> np.ndarray:
        """Return where each ID stands among the known ones, int32; −1 if it is not there."""
        if len(self.known) == 0:
            return np.full(len(ids), -1, np.int32)
        if self._dense is not None:
            low, high = self.known[0] - 1, self.known[-1] + 1
            return np.asarray(self._dense[np.clip(ids, low, high) - low])
        place = np.minimum(np.searchsorted(self.known, ids), len(self.known) - 1)
        return np.where(self.known[place] == ids, place, -1).astype(np.int32)

    @cached_property
    def _dense(self) -> np.ndarray | None:
        """The place of every ID between the ends, if they lie close: one read beats a search."""
        low, high = int(self.known[0]), int(self.known[-1])
        if high - low > min(_MOST_DENSE, 16 * len(self.known) + 65_536):
            return None
        codes = np.full(high - low + 3, -1, np.int32)
        codes[self.known - low + 1] = np.arange(len(self.known), dtype=np.int32)
        return codes


@dataclass(frozen=True)
class SideFields:
    """How the ID and the features of a side become codes.

    Attributes:
        key: The column of the ID.
        id: Rows of the IDs that training saw.
        large: Whole-number features with more values than a category should have.
        small: Categories and quantiles of numbers; null is a code of its own.
        numeric: Which of the small ones are read as numbers.
    """

    key: str
    id: IdCodes
    large: Mapping[str, IdCodes]
    small: ContextEncoder
    numeric: tuple[str, ...]

    @classmethod
    def fit(
        cls,
        key: str,
        ids: np.ndarray,
        counts: np.ndarray,
        frame: pl.DataFrame | None,
        table: FeatureTable | None,
        most: int,
    ) -> Self:
        """Learn codes from the IDs of training rows and the table of features, if there is one."""
        id_codes = IdCodes.fit(ids, counts, most)
        if frame is None or table is None:
            return cls(key, id_codes, {}, ContextEncoder(()), ())
        large = {}
        for name in table.categorical:
            if frame.schema[name].is_integer() and frame[name].n_unique() > _MOST_VALUES:
                values = frame[name].drop_nulls().value_counts(name="count")
                large[name] = IdCodes.fit(values[name].to_numpy(), values["count"].to_numpy(), most)
        named = [*(n for n in table.categorical if n not in large), *table.numeric]
        small = ContextEncoder.fit(typed(frame, named, table.numeric))
        return cls(key, id_codes, large, small, tuple(table.numeric))

    @property
    def slots(self) -> tuple[int, ...]:
        """How many codes each field has."""
        return (self.id.slots, *(codes.slots for codes in self.large.values()), *self.small.slots)

    def encode(self, ids: np.ndarray, frame: pl.DataFrame) -> np.ndarray:
        """Return codes, (entities, fields) int32, each field counting from 0."""
        codes = np.empty((len(ids), len(self.slots)), np.int32)
        codes[:, 0] = self.id.encode(ids)
        for f, (name, large) in enumerate(self.large.items(), start=1):
            known = frame[name].is_not_null().to_numpy()
            codes[:, f] = np.where(known, large.encode(frame[name].fill_null(0).to_numpy()), 0)
        if self.small.features:
            names = list(self.small.names)
            codes[:, 1 + len(self.large) :] = self.small.encode(typed(frame, names, self.numeric))
        return codes


@dataclass(frozen=True)
class Side:
    """All entities of a side that have an ID row or features; the last row is for any other.

    Attributes:
        index: Where an entity stands.
        codes: (entities + 1, fields) int32, rows of the one table.
    """

    index: IdCodes
    codes: Annotated[np.ndarray, Array(("entities and one", "fields"), "int32", low=0)]

    @classmethod
    def of(cls, fields: SideFields, frame: pl.DataFrame | None, offset: int) -> "Side":
        """Encode the table's entities and those that training saw without being in it."""
        seen = pl.DataFrame({fields.key: fields.id.known})
        if frame is not None:
            seen = frame.join(seen, on=fields.key, how="full", coalesce=True)
        whole = seen.sort(fields.key)
        ids = whole[fields.key].to_numpy()
        codes = np.zeros((len(ids) + 1, len(fields.slots)), np.int32)
        codes[:-1] = fields.encode(ids, whole)
        starts = offset + np.cumsum([0, *fields.slots[:-1]])
        return cls(IdCodes(ids), (codes + starts).astype(np.int32))

    def check(self, fields: SideFields, offset: int) -> None:
        """Refuse stored codes that are not rows of their fields."""
        ends = offset + np.cumsum(fields.slots)
        whole = self.codes.shape == (len(self.index.known) + 1, len(ends))
        if not whole or (self.codes < ends - fields.slots).any() or (self.codes >= ends).any():
            raise DataError(f"the codes of '{fields.key}' are not rows of the embedding")

    def find(self, ids: np.ndarray) -> np.ndarray:
        """Return where each ID stands, int32; the last row if it is not there."""
        place = self.index.find(ids)
        return np.where(place >= 0, place, len(self.codes) - 1).astype(np.int32)


def typed(frame: pl.DataFrame, names: Sequence[str], numeric: Sequence[str]) -> pl.DataFrame:
    """Return columns as the codes read them.

    Whole numbers would be taken for categories; as fractions they become quantiles.
    """
    return frame.select(
        pl.col(name).cast(pl.Float64) if name in numeric else pl.col(name) for name in names
    )
