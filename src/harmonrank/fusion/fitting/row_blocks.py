"""Row blocks: what a method is fitted on where sums over rows are all that it needs."""

__all__ = ["EXAM_ROWS", "FitsBlocks", "RowsInBlocks", "logit_scale", "row_blocks"]

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from harmonrank.data import ContextEncoder, Log, Schema
from harmonrank.data.rows import blocks as room
from harmonrank.data.rows.blocks import Blocks
from harmonrank.data.rows.engine_blocks import EngineBlocks
from harmonrank.engine import current_engine
from harmonrank.fusion.fitting.coded_log import CodedLog
from harmonrank.fusion.fitting.fit import Fit
from harmonrank.metrics import logit
from harmonrank.model.fit_rows import FitRows, cut_rows, drawn_from

EXAM_ROWS = 500_000
"""A network is validated on at most so many rows, drawn at random."""


@dataclass(frozen=True)
class RowsInBlocks:
    """The rows of a fit in blocks, of which one at a time is in memory, and how to run.

    All rows count, none misses a score, and weights have mean 1.

    Attributes:
        schema: Which column is what.
        train: Rows to learn from.
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

    def sampled(self) -> Fit:
        """Return the fit of rows in memory: all if a buffer holds them, else some drawn at random.

        Validation rows are all of them, if there are no more than `EXAM_ROWS`.
        """
        held = room.BUFFER_ROWS
        most = held if self.rows <= held else EXAM_ROWS
        train = drawn_from(self.train, self.rows, most)
        valid = drawn_from(self.valid, self.valid_rows, EXAM_ROWS)
        return Fit(
            CodedLog.of(train, self.schema, self.prevalence),
            CodedLog.of(valid, self.schema, self.prevalence),
            self.weights,
            self.seed,
            self.device,
            self.on_event,
            self.checkpoint,
        )


class FitsBlocks:
    """What a method can make of more rows than memory holds; nothing, if not told otherwise."""

    fits_on_workers: ClassVar[bool] = False
    """Whether its fit is made of sums over blocks, which the workers of an engine find."""

    most_valid: ClassVar[int | None] = None
    """At most so many validation rows are looked at, drawn at random; None for all of them."""

    @property
    def fits_blocks(self) -> bool:
        """Whether it is fitted on all rows of a log of which one block at a time is in memory."""
        return False

    def _fit_blocks(self, fit: RowsInBlocks) -> None:
        """Learn from checked rows in blocks."""
        raise NotImplementedError


def row_blocks(
    log: Log,
    encoder: ContextEncoder | None = None,
    shares: np.ndarray | None = None,
    *,
    workers: bool = True,
) -> Blocks[FitRows]:
    """Return a log in memory in the blocks that a table of files has.

    Args:
        log: The rows.
        encoder: Of the context, where that is looked at.
        shares: What each label counts beside the weight of its row, see `FitRows`.
        workers: Hand them to workers, if there are any.
    """
    codes = np.empty((log.rows, 0), np.int32) if encoder is None else log.codes(encoder)
    rows = cut_rows(log.scores, codes, log.known_labels(), log.sample_weight, shares)
    engine = current_engine()
    return rows if engine.name == "local" or not workers else EngineBlocks(engine, rows)


def logit_scale(rows: Blocks[FitRows]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of each score's logit, (M,) each."""
    mass, total = rows.total(_first_moment)
    centre = total / mass
    (squares,) = rows.total(_second_moment, centre)
    return centre, np.sqrt(squares / mass)


def _first_moment(rows: FitRows) -> tuple[float, np.ndarray]:
    w = rows.weights()
    return float(w.sum()), (w[:, None] * logit(rows.scores)).sum(axis=0)


def _second_moment(rows: FitRows, centre: np.ndarray) -> tuple[np.ndarray]:
    return ((rows.weights()[:, None] * (logit(rows.scores) - centre) ** 2).sum(axis=0),)
