"""Scoring with heads: one record per context and one pass over the rows.

Given its context a head is linear in the coordinates but for curves and surfaces, so a row costs M
logarithms and look-ups, a product with its context's linear map, and M exponentials. Where some
head has them, a cell of each curve and surface is added, eight heads at a time.
"""

__all__ = ["HeadScorer"]

from typing import Any

import numpy as np

from harmonrank.kernel import lane_kernel
from harmonrank.model.head_room import HeadRoom
from harmonrank.model.heads import Heads
from harmonrank.model.heads_kernels import score_rows
from harmonrank.model.heads_tables import HeadTables
from harmonrank.model.law import blocks_of, distinct_contexts
from harmonrank.together import each_part, edges_of

# Records of all contexts are made at once and kept if they hold no more numbers than this.
_KEPT_NUMBERS = 8_000_000
_PART_ROWS = 2048  # A request's rows are one part.
_NONE = np.empty(0)


class HeadScorer:
    """Turns scores and context codes into probabilities, or at once into fused scores."""

    def __init__(self, heads: Heads) -> None:
        self._slots = np.array(heads.slots, np.int64)
        self._tables = HeadTables.of(heads)
        self._records: np.ndarray | None = None
        self._rooms: list[HeadRoom] = []
        size = np.prod(self._slots.astype(np.float64))
        if size * self._tables.record <= _KEPT_NUMBERS:
            every = np.stack(np.unravel_index(np.arange(int(size)), heads.slots or (1,)), axis=1)
            self._records = self._tables.of_contexts(every[:, : len(heads.slots)])

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the probability of each objective, (rows, M)."""
        p = np.empty(scores.shape)
        self._run(p, _NONE, _NONE, scores, codes)
        return p

    def fuse(self, scores: np.ndarray, codes: np.ndarray, effective: np.ndarray) -> np.ndarray:
        """Return Σ_m effective_m p_m of each row."""
        fused = np.empty(len(scores))
        self._run(_NONE.reshape(0, 0), fused, effective, scores, codes)
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
            of_row = np.empty(len(codes), np.int64)
            codes = np.ascontiguousarray(codes)
            self._score(p, fused, effective, scores, of_row, self._records, codes)
            return
        contexts, of_row = distinct_contexts(codes, self._tables.heads.slots)
        blocks = list(blocks_of(len(contexts), self._tables.made))
        if len(blocks) == 1:
            records = self._tables.of_contexts(contexts)
            self._score(p, fused, effective, scores, of_row, records)
            return
        order = np.argsort(of_row, kind="stable")
        ends = np.searchsorted(of_row[order], [block.stop for block in blocks])
        for block, low, high in zip(blocks, [0, *ends], ends, strict=False):
            rows = order[low:high]
            part = p[rows] if len(p) else p, fused[rows] if len(fused) else fused
            records = self._tables.of_contexts(contexts[block])
            self._score(*part, effective, scores[rows], of_row[rows] - block.start, records)
            for whole, some in zip((p, fused), part, strict=True):
                if len(whole):
                    whole[rows] = some

    def _score(
        self,
        p: np.ndarray,
        fused: np.ndarray,
        effective: np.ndarray,
        scores: np.ndarray,
        of_row: np.ndarray,
        records: np.ndarray,
        codes: np.ndarray | None = None,
    ) -> None:
        """Score rows by the records of their contexts; with codes, find these records first."""
        tables = self._tables
        given: Any = (
            np.ascontiguousarray(scores), of_row, *tables.coordinate, tables.record, tables.width,
            records, tables.unit, *tables.bends, p, fused, effective,
        )  # fmt: skip
        edges = edges_of(len(scores), _PART_ROWS)
        score: Any = score_rows

        def work(part: int) -> None:
            try:
                room = self._rooms.pop()
            except IndexError:  # All are in use by other threads.
                room = HeadRoom.of(scores.shape[1], tables.width)
            if codes is not None:
                _number(edges[part], edges[part + 1], codes, self._slots, of_row)
            score(edges[part], edges[part + 1], *given, *room)
            self._rooms.append(room)

        each_part(work, len(edges) - 1)


@lane_kernel
def _number(begin: int, end: int, codes: np.ndarray, slots: np.ndarray, number: np.ndarray) -> None:
    """Write the place of the context of some rows in the table of all contexts."""
    for i in range(begin, end):
        place = 0
        for feature in range(len(slots)):
            place = place * slots[feature] + codes[i, feature]
        number[i] = place
