"""Scoring with heads: one record per context and one pass over the rows.

Given its context a head is linear in the coordinates but for curves and surfaces, so a row costs M
logarithms and look-ups, a product with its context's linear map, and M exponentials. Where some
head has them, a cell of each curve and surface is added, four heads at a time.
"""

__all__ = ["HeadScorer"]

import numpy as np

from harmonrank.model.density.density import blocks_of, distinct_contexts
from harmonrank.model.linear.heads import Heads
from harmonrank.model.scorer.head_room import HeadRoom
from harmonrank.model.scorer.heads_kernels import score_rows
from harmonrank.model.scorer.heads_tables import ContextRecords, HeadTables
from harmonrank.support.parallel import each_part, edges_of

# Records of all contexts are made at once and kept if they hold no more numbers than this.
_KEPT_NUMBERS = 8_000_000
_PART_ROWS = 2048  # A request's rows are one part.
# A part is begun by the interpreter, one thread at a time, so many rows are cut into larger ones.
_MANY_ROWS, _LARGE_PART = 200_000, 8192
_NONE = np.empty(0)
_NUMBERED = np.ones(1, np.int64)  # Slots of contexts that are given by their number.


class HeadScorer:
    """Turns scores and context codes into probabilities, or at once into fused scores."""

    def __init__(self, heads: Heads) -> None:
        self._slots = np.array(heads.slots, np.int64)
        self._tables = HeadTables.of(heads)
        self._records: ContextRecords | None = None
        self._rooms: list[HeadRoom] = []
        size = np.prod(self._slots.astype(np.float64))
        if size * self._tables.padded <= _KEPT_NUMBERS:
            every = np.stack(np.unravel_index(np.arange(int(size)), heads.slots or (1,)), axis=1)
            self._records = self._tables.records(every[:, : len(heads.slots)])

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the probability of each objective, (rows, M)."""
        p = np.empty(scores.shape)
        self._run(p, _NONE, _NONE, scores, codes)
        return p

    def fuse(self, scores: np.ndarray, codes: np.ndarray, effective: np.ndarray) -> np.ndarray:
        """Return Σ_m effective_m p_m of each row."""
        fused = np.empty(len(scores))
        self._run(_NONE, fused, effective[self._tables.curves.heads], scores, codes)
        return fused

    def _run(
        self,
        p: np.ndarray,
        fused: np.ndarray,
        effective: np.ndarray,
        scores: np.ndarray,
        codes: np.ndarray,
    ) -> None:
        if self._records is not None:
            self._score(p, fused, effective, scores, codes, self._slots, self._records)
            return
        contexts, of_row = distinct_contexts(codes, self._tables.heads.slots)
        blocks = list(blocks_of(len(contexts), self._tables.made))
        if len(blocks) == 1:
            records = self._tables.records(contexts)
            self._score(p, fused, effective, scores, of_row[:, None], _NUMBERED, records)
            return
        order = np.argsort(of_row, kind="stable")
        ends = np.searchsorted(of_row[order], [block.stop for block in blocks])
        for block, low, high in zip(blocks, [0, *ends], ends, strict=False):
            rows = order[low:high]
            part = p[rows] if len(p) else p, fused[rows] if len(fused) else fused
            records = self._tables.records(contexts[block])
            number = of_row[rows, None] - block.start
            self._score(*part, effective, scores[rows], number, _NUMBERED, records)
            for whole, some in zip((p, fused), part, strict=True):
                if len(whole):
                    whole[rows] = some

    def _score(
        self,
        p: np.ndarray,
        fused: np.ndarray,
        effective: np.ndarray,
        scores: np.ndarray,
        codes: np.ndarray,
        slots: np.ndarray,
        records: ContextRecords,
    ) -> None:
        """Score rows by the records of all contexts that these slots have."""
        tables = self._tables
        flat = np.ascontiguousarray(scores).reshape(-1)
        rows = flat, np.ascontiguousarray(codes, np.int32).reshape(-1), slots
        coordinates, contexts, curves = (
            tuple(tables.coordinate),
            tuple(records),
            tuple(tables.curves),
        )
        out = p.reshape(-1), fused, effective
        edges = edges_of(len(scores), _PART_ROWS if len(scores) < _MANY_ROWS else _LARGE_PART)

        def work(part: int) -> None:
            try:
                room = self._rooms.pop()
            except IndexError:  # All are in use by other threads.
                room = HeadRoom.of(scores.shape[1], tables.width)
            low, high = edges[part], edges[part + 1]
            score_rows(low, high, rows, coordinates, contexts, curves, out, tuple(room))
            self._rooms.append(room)

        each_part(work, len(edges) - 1)
