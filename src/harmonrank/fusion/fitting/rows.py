"""TrainingRows: what a method's fit is given."""

__all__ = ["TrainingRows"]

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank.data import ContextEncoder, Schema
from harmonrank.data.rows.blocks import Blocks
from harmonrank.model.fit_rows import FitRows, drawn_from


@dataclass(frozen=True)
class TrainingRows:
    """Rows in blocks, and how to run. All rows count, and weights have mean 1.

    Attributes:
        schema: Which column is what.
        train: Rows to learn from, in the order of the log.
        valid: Rows for early stopping and selection; none where a method needs none.
        rows: How many there are to learn from.
        valid_rows: How many to select by.
        encoder: Of their context.
        prevalence: (M,) of the training rows.
        weights: (M,) what each objective's AUC counts.
        seed: Decides everything that is drawn.
        device: Where a network is trained.
        on_event: Called with every event of the fit.
        checkpoint: Where a fit that takes long keeps its state.
    """

    schema: Schema
    train: Blocks[FitRows]
    valid: Blocks[FitRows]
    rows: int
    valid_rows: int
    encoder: ContextEncoder
    prevalence: np.ndarray
    weights: np.ndarray
    seed: int
    device: str
    on_event: Callable[[Any], None]
    checkpoint: Path | None

    @property
    def slots(self) -> tuple[int, ...]:
        """How many codes each context feature has."""
        return self.encoder.slots

    def sample(self, most: int | None = None) -> FitRows:
        """Return training rows in memory: all, or so many drawn at random."""
        return drawn_from(self.train, self.rows, self.rows if most is None else most)

    def valid_sample(self, most: int | None = None) -> FitRows:
        """Return validation rows in memory: all, or so many drawn at random."""
        return drawn_from(self.valid, self.valid_rows, self.valid_rows if most is None else most)
