"""CodedLog: rows whose context is known by its codes alone, as they come out of blocks."""

__all__ = ["CodedLog"]

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import polars as pl

from harmonrank.data import ContextEncoder, Log, Schema
from harmonrank.model.fit_rows import FitRows


@dataclass(frozen=True)
class CodedLog(Log):
    """Some rows of a log for a fit that looks at codes.

    Attributes:
        coded: (rows, features), the codes of their context.
        share: (objectives,) the prevalence of all rows that these stand for.
    """

    coded: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.int32))
    share: np.ndarray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, rows: FitRows, schema: Schema, share: np.ndarray) -> "CodedLog":
        """Return rows of a block, with the prevalence of all of them."""
        return cls(
            schema=schema,
            scores=rows.scores,
            context=pl.DataFrame(),
            labels=rows.labels,
            sample_weight=rows.weight,
            shown=None if rows.shares is None else rows.shares > 0,
            coded=rows.codes.astype(np.int32),
            share=share,
        )

    def codes(self, encoder: ContextEncoder) -> np.ndarray:  # noqa: ARG002
        """Return the codes of the encoder that these rows were coded by."""
        return self.coded

    def prevalence(self) -> np.ndarray:
        """Return the prevalence of all rows."""
        return self.share

    def turned(self, which: np.ndarray) -> Self:
        """Return rows of which some objectives have become their absence."""
        return replace(super().turned(which), share=np.where(which, 1 - self.share, self.share))

    def take(self, index: np.ndarray) -> Self:
        """Return some rows, in the order of the index."""
        return replace(super().take(index), coded=self.coded[index])
