"""Guard rows: labelled rows that judge a model before they are learned."""

__all__ = ["GuardRows", "is_guard"]

from dataclasses import dataclass, replace
from typing import Self
from zlib import crc32

import numpy as np
import polars as pl

from harmonrank.data import Log, Schema, read_log

_MIXING = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: neighbours end up far apart


def is_guard(request: pl.Series, share: float, seed: int) -> np.ndarray:
    """Return which rows are guard rows: all rows of a request, or none.

    A salted hash of the request decides, so that it is the same in every run, and a request that
    is in two intervals is on one side.
    """
    known = request.cast(pl.String).fill_null("")
    names = known.unique(maintain_order=True)
    hashed = np.array([crc32(name.encode(), seed) for name in names.to_list()], np.uint64)
    chosen = names.filter(pl.Series((hashed * _MIXING) >> np.uint64(32) < int(share * 2**32)))
    return known.is_in(chosen.implode()).to_numpy()


@dataclass(frozen=True, eq=False)
class GuardRows:
    """Rows that wait to be learned until they have judged a model.

    Rows of one batch may lack a class of a rare objective, and then say nothing about it. Such
    rows wait for those of the next batch.

    Attributes:
        rows: Labelled rows, oldest first.
        judged: Whether they have judged a model, so that the next batch learns them.
    """

    rows: pl.DataFrame | None = None
    judged: bool = False

    @property
    def count(self) -> int:
        """How many rows wait."""
        return 0 if self.rows is None else self.rows.height

    def released(self, most: int, *, all_of_them: bool = False) -> tuple[Self, pl.DataFrame | None]:
        """Return what is left, and the rows that are to be learned now.

        Args:
            most: So many rows may wait to judge a model; of more, the oldest are learned.
            all_of_them: Whether none may wait any longer.
        """
        if self.rows is None or self.judged or all_of_them:
            return type(self)(), self.rows
        spare = max(self.rows.height - most, 0)
        if not spare:
            return self, None
        return replace(self, rows=self.rows[spare:]), self.rows[:spare]

    def with_rows(self, rows: pl.DataFrame) -> Self:
        """Return these guard rows and the new ones, none of which has judged a model."""
        both = rows if self.rows is None else pl.concat([self.rows, rows])
        return type(self)(both if both.height else None)

    def having_judged(self) -> Self:
        """Return them as rows that the next batch learns."""
        return replace(self, judged=True)

    def log(self, schema: Schema) -> Log | None:
        """Return the rows as a log; None if there are none."""
        return None if self.rows is None else read_log(self.rows, schema)

    def lacking(self, schema: Schema) -> str | None:
        """Return why the rows cannot judge a model; None if they can."""
        log = self.log(schema)
        if log is None:
            return "there are no guard rows yet"
        for name, labels in zip(schema.names, log.counted().known_labels().T, strict=True):
            for value, kind in ((1, "positive"), (0, "negative")):
                if not (labels == value).any():
                    return f"no {kind} label of '{name}' among the {log.rows:,} guard rows yet"
        return None
