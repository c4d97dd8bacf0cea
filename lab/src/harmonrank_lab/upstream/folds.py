"""Folds: which rows are left out together."""

__all__ = ["Folds"]

from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np
import polars as pl
from msgspec import Meta

from harmonrank.support.errors import DataError, UsageError
from harmonrank_lab.upstream.logs import ImportedLog

_SAMPLE_ROWS = 1_000_000
_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Folds:
    """Assigns every row to one of `count` folds, by its user or by its time.

    Rows are left out as the split left the test rows out: by time where the split went by time,
    so that most users of a left-out row are known, and by user where the split went by user, so
    that none is. Only then do out-of-fold scores follow the density of test scores.

    Attributes:
        column: The user or the time of a row.
        edges: Where a later block of time begins.
    """

    count: Annotated[int, Meta(ge=2, le=400)]
    by: Literal["user", "time"]
    column: str
    edges: tuple[Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)], ...] = ()

    def __post_init__(self) -> None:
        """Refuse stored edges that do not cut time into that many blocks."""
        wanted = self.count - 1 if self.by == "time" else 0
        if len(self.edges) != wanted or tuple(sorted(self.edges)) != self.edges:
            raise DataError(f"`folds` must have {wanted} rising edges, got {self.edges}")

    @classmethod
    def of_log(
        cls, log: ImportedLog, count: int, by: Literal["user", "time"] | None = None
    ) -> Self:
        """Cut the training rows into folds; `by` follows the split if left out."""
        if count < 2:
            raise UsageError(f"`folds` must be at least 2. Got {count}.")
        c = log.columns
        if by == "time" and c.time is None:
            raise UsageError(f"'{log.folder}' has no time column; cut its folds by user.")
        by = by or ("user" if c.time is None else "time")
        if by == "user" or c.time is None:
            return cls(count, "user", c.user)
        every = max(1, log.rows["train"] // _SAMPLE_ROWS)
        batches = log.batches("train", [c.time], rows=1 << 20)
        times = np.concatenate([f[c.time].gather_every(every).to_numpy() for f in batches])
        shares = np.linspace(0, 1, count + 1)[1:-1]
        edges = np.quantile(times, shares, method="nearest")
        return cls(count, "time", c.time, tuple(int(edge) for edge in edges))

    def of(self, frame: pl.DataFrame) -> np.ndarray:
        """Return the fold of each row, from 0.

        >>> Folds(3, "time", "t", (10, 20)).of(pl.DataFrame({"t": [9, 10, 25]})).tolist()
        [0, 1, 2]
        """
        values = frame[self.column].to_numpy()
        if self.by == "time":
            return np.searchsorted(self.edges, values, side="right")
        mixed = (values.astype(np.int64).view(np.uint64) * _FIBONACCI) >> np.uint64(32)
        return (mixed % np.uint64(self.count)).astype(np.int64)
