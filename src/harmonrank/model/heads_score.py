"""Scoring with heads: one table per context and one pass over the rows.

Given its context a head is linear in the coordinates, so a row costs M logarithms and
look-ups, an M × M product
with its context's table, and M exponentials.
"""

__all__ = ["HeadScorer"]

from functools import partial
from typing import Any

import numpy as np

from harmonrank.kernel import inline_kernel, kernel
from harmonrank.model.coordinate import SMALLEST_SCORE
from harmonrank.model.heads import Heads
from harmonrank.model.law import distinct_contexts
from harmonrank.together import each_part, edges_of

# Up to this many, the tables of all contexts are made at once and kept.
_KEPT_CONTEXTS = 100_000
_PART_ROWS = 2048  # A request's rows are one part.


class HeadScorer:
    """Turns scores and context codes into probabilities, or at once into fused scores."""

    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        self._size = int(np.prod(np.array(heads.slots, dtype=np.float64)))
        map_ = heads.coordinate
        self._map = (map_.low, map_.high, map_.table, map_.below, map_.above)
        self._tables: tuple[np.ndarray, np.ndarray] | None = None
        if self._size <= _KEPT_CONTEXTS:
            every = np.stack(np.unravel_index(np.arange(self._size), heads.slots or (1,)), axis=1)
            self._tables = heads.affine(every[:, : len(heads.slots)])

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the probability of each objective, (rows, M)."""
        p = np.empty(scores.shape)
        self._run(partial(_probabilities, p), scores, codes)
        return p

    def fuse(self, scores: np.ndarray, codes: np.ndarray, effective: np.ndarray) -> np.ndarray:
        """Return Σ_m effective_m p_m of each row."""
        fused = np.empty(len(scores))
        self._run(partial(_fuse, fused, effective), scores, codes)
        return fused

    def _run(self, task: "partial[None]", scores: np.ndarray, codes: np.ndarray) -> None:
        scores = np.ascontiguousarray(scores)
        if self._tables is None:
            contexts, of_row = distinct_contexts(codes, self._heads.slots)
            intercept, slope = self._heads.affine(contexts)
        else:
            of_row = _numbered(np.ascontiguousarray(codes), np.array(self._heads.slots))
            intercept, slope = self._tables
        edges = edges_of(len(scores), _PART_ROWS)
        given = (*self._map, scores, of_row, intercept, slope)

        each_part(lambda part: task(*given, edges[part], edges[part + 1]), len(edges) - 1)


@kernel
def _numbered(codes: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Return the place of each row's context in the table of all contexts."""
    number = np.zeros(len(codes), dtype=np.int64)
    for i in range(len(codes)):
        for feature in range(len(slots)):
            number[i] = number[i] * slots[feature] + codes[i, feature]
    return number


@inline_kernel
def _place(score: float, low: float, high: float, table: Any, below: float, above: float) -> Any:
    """Return the coordinate of a score, as `Coordinate` defines it."""
    s = min(max(np.float64(score), SMALLEST_SCORE), 1.0 - SMALLEST_SCORE)
    x = np.log(s / (1.0 - s))
    if x <= low:
        return table[0] + below * (x - low)
    if x >= high:
        return table[-1] + above * (x - high)
    place = (x - low) / (high - low) * (table.size - 1)
    cell = min(int(place), table.size - 2)
    return table[cell] + (place - cell) * (table[cell + 1] - table[cell])


@kernel
def _probabilities(  # type: ignore[no-untyped-def]
    p, start, end, table, below, above, scores, of_row, intercept, slope, low, high
):
    M = scores.shape[1]
    places = np.empty(M)
    for i in range(low, high):
        c = of_row[i]
        for j in range(M):
            places[j] = _place(scores[i, j], start[j], end[j], table[j], below[j], above[j])
        for m in range(M):
            head = intercept[c, m]
            for j in range(M):
                head += slope[c, m, j] * places[j]
            p[i, m] = 1.0 / (1.0 + np.exp(-head))


@kernel
def _fuse(  # type: ignore[no-untyped-def]
    fused, effective, start, end, table, below, above, scores, of_row, intercept, slope, low, high
):
    M = scores.shape[1]
    places = np.empty(M)
    for i in range(low, high):
        c = of_row[i]
        for j in range(M):
            places[j] = _place(scores[i, j], start[j], end[j], table[j], below[j], above[j])
        total = 0.0
        for m in range(M):
            head = intercept[c, m]
            for j in range(M):
                head += slope[c, m, j] * places[j]
            total += effective[m] / (1.0 + np.exp(-head))
        fused[i] = total
