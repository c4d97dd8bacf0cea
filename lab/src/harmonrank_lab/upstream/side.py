"""Side: users or items, each with an ID and features, as rows of codes."""

__all__ = ["Side", "SideFields", "typed"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from harmonrank.data import ContextEncoder
from harmonrank.support.errors import DataError
from harmonrank.support.storage.arrays import Array
from harmonrank_lab.upstream.ids import IdCodes
from harmonrank_lab.upstream.logs import FeatureTable
from harmonrank_lab.upstream.stored import SideForm

_MOST_VALUES = 1000


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
        large = {
            name: _id_codes(frame[name], most)
            for name in table.categorical
            if frame.schema[name].is_integer() and frame[name].n_unique() > _MOST_VALUES
        }
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

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON parts and arrays that `restore` reads."""
        parts = {
            "key": self.key,
            "small": self.small.to_list(),
            "numeric": list(self.numeric),
            "shared": {"": self.id.shared, **{n: c.shared for n, c in self.large.items()}},
        }
        arrays = {"": self.id.known, **{n: c.known for n, c in self.large.items()}}
        return parts, {f"known/{name}": values for name, values in arrays.items()}

    @staticmethod
    def declare(form: SideForm) -> dict[str, Array]:
        """Declare the arrays of stored fields and of the entities that have them."""
        ids = {
            f"known/{n}": Array((f"known {n}",), "int64", strictly=True, least=0)
            for n in ("", *form.shared)
        }
        fields = 1 + len(form.shared) - ("" in form.shared) + len(form.small)
        return ids | {
            "ids": Array(("entities",), "int64", strictly=True, least=0),
            "codes": Array(("entities and one", fields), "int32", low=0),
        }

    @classmethod
    def restore(cls, form: SideForm, arrays: Mapping[str, np.ndarray]) -> Self:
        """Take over stored fields, whose arrays are as declared."""
        if "" not in form.shared:
            raise DataError("`shared` lacks the ID itself")
        codes = {n: IdCodes(arrays[f"known/{n}"], k) for n, k in form.shared.items()}
        small = ContextEncoder.from_form(form.small, [part.name for part in form.small])
        return cls(form.key, codes.pop(""), codes, small, tuple(form.numeric))


@dataclass(frozen=True)
class Side:
    """All entities of a side that have an ID row or features; the last row is for any other.

    Attributes:
        index: Where an entity stands.
        codes: (entities + 1, fields) int32, rows of the one table.
    """

    index: IdCodes
    codes: np.ndarray

    @classmethod
    def of(cls, fields: SideFields, frame: pl.DataFrame | None, offset: int) -> "Side":
        """Encode the table's entities and those that training saw without being in it."""
        seen = pl.DataFrame({fields.key: fields.id.known})
        whole = (
            seen if frame is None else frame.join(seen, on=fields.key, how="full", coalesce=True)
        )
        whole = whole.sort(fields.key)
        ids = whole[fields.key].to_numpy()
        codes = np.zeros((len(ids) + 1, len(fields.slots)), np.int32)
        codes[:-1] = fields.encode(ids, whole)
        starts = offset + np.cumsum([0, *fields.slots[:-1]])
        return cls(IdCodes(ids), (codes + starts).astype(np.int32))

    @classmethod
    def restore(cls, fields: SideFields, arrays: Mapping[str, np.ndarray], offset: int) -> "Side":
        """Take over stored entities, whose codes must be rows of their fields."""
        ids, codes = arrays["ids"], arrays["codes"]
        ends = offset + np.cumsum(fields.slots)
        below, above = codes < ends - fields.slots, codes >= ends
        if len(codes) != len(ids) + 1 or below.any() or above.any():
            raise DataError(f"the codes of '{fields.key}' are not rows of the embedding")
        return cls(IdCodes(ids), codes)

    def find(self, ids: np.ndarray) -> np.ndarray:
        """Return where each ID stands, int32; the last row if it is not there."""
        place = self.index.find(ids)
        return np.where(place >= 0, place, len(self.codes) - 1).astype(np.int32)


def _id_codes(series: pl.Series, most: int) -> IdCodes:
    counts = series.drop_nulls().value_counts(name="count")
    return IdCodes.fit(counts[series.name].to_numpy(), counts["count"].to_numpy(), most)


def typed(frame: pl.DataFrame, names: Sequence[str], numeric: Sequence[str]) -> pl.DataFrame:
    """Return columns as the codes read them.

    Whole numbers would be taken for categories; as fractions they become quantiles.
    """
    return frame.select(
        pl.col(name).cast(pl.Float64) if name in numeric else pl.col(name) for name in names
    )
