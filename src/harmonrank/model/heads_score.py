"""Scoring with heads: one table per context and one pass over the rows.

Given its context a head is linear in the coordinates but for curves and surfaces, so a row costs M
logarithms and look-ups, an M × M product with its context's table, and M exponentials. Where some
head has them, four corners of each surface and two knots of each curve are added to all heads.
"""

__all__ = ["HeadScorer"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.kernel import inline_kernel, kernel, product_kernel
from harmonrank.model.coordinate import SMALLEST_SCORE
from harmonrank.model.heads import Heads
from harmonrank.model.law import distinct_contexts
from harmonrank.model.residual import CURVE_KNOTS, NEAR, SURFACE_KNOTS, surface_pairs
from harmonrank.together import each_part, edges_of

# Tables of all contexts are made at once and kept if they hold no more numbers than this.
_KEPT_NUMBERS = 8_000_000
_PART_ROWS = 2048  # A request's rows are one part.
_LANES = 8  # Heads that are one vector of float32.
_BLOCK = 32  # Rows whose intermediate results stay in the nearest cache.
_NONE = np.empty(0)


class HeadScorer:
    """Turns scores and context codes into probabilities, or at once into fused scores."""

    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        size = np.prod(np.array(heads.slots, dtype=np.float64))
        map_ = heads.coordinate
        self._map = (map_.low, map_.high, map_.table, map_.below, map_.above)
        self._bends = _Bends.of(heads)
        self._tables: tuple[np.ndarray, ...] | None = None
        M = len(heads.theta)
        if size * (2 * M * M + 3 * M) <= _KEPT_NUMBERS:
            every = np.stack(np.unravel_index(np.arange(int(size)), heads.slots or (1,)), axis=1)
            self._tables = self._tables_of(every[:, : len(heads.slots)])

    def _tables_of(self, contexts: np.ndarray) -> tuple[np.ndarray, ...]:
        return (*self._heads.affine(contexts), *self._bends.standard(self._heads, contexts))

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
        scores = np.ascontiguousarray(scores)
        if self._tables is None:
            contexts, of_row = distinct_contexts(codes, self._heads.slots)
            tables = self._tables_of(contexts)
        else:
            of_row = _numbered(np.ascontiguousarray(codes), np.array(self._heads.slots))
            tables = self._tables
        edges = edges_of(len(scores), _PART_ROWS)
        given: Any = (*self._map, scores, of_row, *tables, *self._bends.arrays, p, fused, effective)

        each_part(lambda part: _score(edges[part], edges[part + 1], *given), len(edges) - 1)


@dataclass(frozen=True)
class _Bends:
    """The curves and surfaces that some head has; tables with the heads side by side.

    Attributes:
        arrays: First knot and knots per unit of each input; the inputs that have curves, and the
            curves; the pairs that have surfaces, and the surfaces. Tables are float32, flat, with
            eight heads side by side at each knot.
        used: How many inputs are looked at: none, the scores, or all.
    """

    arrays: tuple[np.ndarray, ...]
    used: int

    @classmethod
    def of(cls, heads: Heads) -> "_Bends":
        found, M = heads.residual, len(heads.theta)
        curved, joined = found.curved, found.joined
        pairs = np.array(surface_pairs(M), np.int64).reshape(-1, 2)[joined]
        last = max(curved.max(initial=-1), pairs.max(initial=-1))
        per_unit = 1 / (found.high - found.low)
        arrays = (
            found.low.astype(np.float32),
            per_unit.astype(np.float32),
            curved,
            _side_by_side(found.curve[:, curved]),
            pairs,
            _side_by_side(found.surface[:, joined]),
        )
        return cls(arrays, 0 if last < 0 else M if last < M else 2 * M + 1)

    def standard(self, heads: Heads, contexts: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return what turns coordinates into inputs (`Heads.standard`); nothing if none is used."""
        if not self.used:
            none = _NONE.reshape(0, 0)
            return _NONE, none, none, _NONE.reshape(0, 0, 0), none
        unit, shift, mean, surprise = heads.standard(contexts)
        if self.used == len(unit):
            surprise = surprise[:0]
        root = np.sqrt(np.einsum("cjj->cj", surprise))
        return unit, shift, mean, surprise / root[:, :, None], root


def _side_by_side(tables: np.ndarray) -> np.ndarray:
    """Lay (M, …) tables out in blocks of eight heads, which stand side by side at each knot."""
    M = len(tables)
    padded = np.zeros((-(-M // _LANES) * _LANES, *tables.shape[1:]), np.float32)
    padded[:M] = tables
    blocks = padded.reshape(len(padded) // _LANES, _LANES, *tables.shape[1:])
    return np.ascontiguousarray(np.moveaxis(blocks, 1, -1)).reshape(-1)


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


@product_kernel
def _knots(v: Any, low: Any, per_unit: Any, cell: Any, share: Any, wide: Any, part: Any) -> None:
    """Write the place of each input between the knots: a cell, and the share of its upper end."""
    zero, one = np.float32(0), np.float32(1)
    curve, surface = np.float32(CURVE_KNOTS - 1), np.float32(SURFACE_KNOTS - 1)
    for i in range(v.size):
        place = (v[i] - low[i]) * per_unit[i]
        place = min(max(place, zero), one)
        fine, coarse = place * curve, place * surface
        cell[i] = min(np.int32(fine), np.int32(CURVE_KNOTS - 2))
        share[i] = fine - np.float32(cell[i])
        wide[i] = min(np.int32(coarse), np.int32(SURFACE_KNOTS - 2))
        part[i] = coarse - np.float32(wide[i])


@inline_kernel
def _inputs(
    places: Any, unit: Any, shift: Any, mean: Any, surprise: Any, root: Any, known: int, v: Any
) -> None:
    """Write u, and r and d where there is a surprise to multiply with (see `inputs_of`)."""
    M = places.size
    for j in range(M):
        v[j] = places[j] * unit[j] + shift[j]
    if known:
        distance = 0.0
        for j in range(M):
            r = 0.0
            for k in range(M):
                r += surprise[0, j, k] * (v[k] - mean[k])
            distance += r * root[0, j] * (v[j] - mean[j])
            v[M + j] = r
        v[2 * M] = np.log(distance / M + NEAR)


@product_kernel
def _bend(
    curved: Any, curves: Any, cell: Any, share: Any, pairs: Any, surfaces: Any, wide: Any,
    part: Any, rows: int, lane: int, sums: Any,
) -> None:  # fmt: skip
    """Write the sums of all curves and surfaces of 8 heads, for some rows.

    The tables are flat and the indices unsigned, so that eight heads are one vector; rows are the
    inner loop, so that no addition waits for the one before it.
    """
    eight, down = np.uint64(_LANES), np.uint64(SURFACE_KNOTS * _LANES)
    sums[:] = 0
    for t in range(len(curved)):
        i, first = curved[t], (lane * len(curved) + t) * CURVE_KNOTS
        for r in range(rows):
            k, x = np.uint64((first + cell[r, i]) * _LANES), share[r, i]
            s = np.uint64(r * _LANES)
            for m in range(eight):
                sums[s + m] += curves[k + m] + x * (curves[k + eight + m] - curves[k + m])
    for t in range(len(pairs)):
        i, j = pairs[t, 0], pairs[t, 1]
        first = (lane * len(pairs) + t) * SURFACE_KNOTS * SURFACE_KNOTS
        for r in range(rows):
            k = np.uint64((first + wide[r, i] * SURFACE_KNOTS + wide[r, j]) * _LANES)
            below, s = k + down, np.uint64(r * _LANES)
            x, y = part[r, i], part[r, j]
            for m in range(eight):
                near = surfaces[k + m] + y * (surfaces[k + eight + m] - surfaces[k + m])
                far = surfaces[below + m]
                far += y * (surfaces[below + eight + m] - far)
                sums[s + m] += near + x * (far - near)


@kernel
def _score(
    low: int, high: int, start: Any, end: Any, table: Any, below: Any, above: Any, scores: Any,
    of_row: Any, intercept: Any, slope: Any, unit: Any, shift: Any, mean: Any, surprise: Any,
    root: Any, knot: Any, per_unit: Any, curved: Any, curves: Any, pairs: Any, surfaces: Any,
    p: Any, fused: Any, effective: Any,
) -> None:  # fmt: skip
    """Write the probabilities of some rows, or their sum by effective weights."""
    M = scores.shape[1]
    V = 2 * M + 1
    places, z, v = np.empty(M), np.empty((_BLOCK, M)), np.zeros(V, np.float32)
    cell, share = np.zeros((_BLOCK, V), np.int32), np.zeros((_BLOCK, V), np.float32)
    wide, part = np.zeros((_BLOCK, V), np.int32), np.zeros((_BLOCK, V), np.float32)
    sums = np.empty(_BLOCK * _LANES, np.float32)
    bends, known = len(unit) > 0, len(surprise) > 0
    for first in range(low, high, _BLOCK):
        rows = min(_BLOCK, high - first)
        for r in range(rows):
            c = of_row[first + r]
            for j in range(M):
                score = scores[first + r, j]
                places[j] = _place(score, start[j], end[j], table[j], below[j], above[j])
            for m in range(M):
                z[r, m] = intercept[c, m]
                for j in range(M):
                    z[r, m] += slope[c, m, j] * places[j]
            if bends:
                _inputs(places, unit, shift[c], mean[c], surprise[c:], root[c:], known, v)
                _knots(v, knot, per_unit, cell[r], share[r], wide[r], part[r])
        for lane in range(-(-M // _LANES) if bends else 0):
            _bend(curved, curves, cell, share, pairs, surfaces, wide, part, rows, lane, sums)
            for r in range(rows):
                for m in range(lane * _LANES, min(M, (lane + 1) * _LANES)):
                    z[r, m] += sums[(r - lane) * _LANES + m]
        for r in range(rows):
            total = 0.0
            for m in range(M):
                chance = 1.0 / (1.0 + np.exp(-z[r, m]))
                if len(effective):
                    total += effective[m] * chance
                else:
                    p[first + r, m] = chance
            if len(effective):
                fused[first + r] = total
