"""Curves: the curves and surfaces of a residual, laid out for the kernels that score.

Between its knots a curve is a + b·x, and a surface a + b·y + x·(c + d·y), x and y being how far a
row is on its way through the cell. So a cell holds these coefficients in place of its knots, of
four heads side by side: those of a surface are one cache line. Few heads have all of them, so heads
with many come first, and four heads without one leave it out.
"""

__all__ = ["HEADS", "SURFACE_CELLS", "Curves"]

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from harmonrank.model.scorer.head_room import aligned
from harmonrank.model.terms.residual import SURFACE_KNOTS, Residual, surface_pairs

HEADS = 4
"""How many heads are taken at once."""
SURFACE_CELLS = SURFACE_KNOTS - 1


class Curves(NamedTuple):
    """Tables of curves and surfaces, float32 and flat, four heads after the other.

    Attributes:
        low: First knot of each input.
        per_unit: One over its range.
        heads: The heads in the order of the tables.
        cells: How many cells a curve has.
        curved: The input of each curve.
        curve_ends: Where the curves of each four heads end, after a 0.
        curve_cells: (curves, cells, heads, 2): a and b.
        pairs: The two inputs of each surface.
        surface_ends: Where the surfaces of each four heads end, after a 0.
        surface_cells: (surfaces, cells, cells, 2, heads, 2): a and b, then c and d.
    """

    low: np.ndarray
    per_unit: np.ndarray
    heads: np.ndarray
    cells: int
    curved: np.ndarray
    curve_ends: np.ndarray
    curve_cells: np.ndarray
    pairs: np.ndarray
    surface_ends: np.ndarray
    surface_cells: np.ndarray

    @classmethod
    def of(cls, residual: Residual) -> "Curves":
        """Lay the curves and surfaces of a residual out, those without a coefficient left out."""
        M = len(residual.curve)
        bent, joint = residual.curve.any(axis=2), residual.surface.any(axis=(2, 3))
        heads = np.argsort(-bent.sum(axis=1) - joint.sum(axis=1), kind="stable")
        inputs = np.array(surface_pairs(M), np.int64).reshape(-1, 2)
        curved, curve_ends, curves = _listed(residual.curve[heads], _curve_cells)
        joined, surface_ends, surfaces = _listed(residual.surface[heads], _surface_cells)
        return cls(
            residual.low.astype(np.float32),
            (1 / (residual.high - residual.low)).astype(np.float32),
            heads,
            residual.knots - 1,
            curved,
            curve_ends,
            curves,
            inputs[joined],
            surface_ends,
            surfaces,
        )

    @property
    def last(self) -> int:
        """Return the last input that one of them looks at, −1 if there is none."""
        return int(max(self.curved.max(initial=-1), self.pairs.max(initial=-1)))


def _curve_cells(knots: np.ndarray) -> np.ndarray:
    """Return a and b of each cell of some heads' curve, (cells, heads, 2)."""
    a = knots[:, :-1]
    return np.moveaxis(np.stack([a, knots[:, 1:] - a], axis=-1), 0, 1)


def _surface_cells(knots: np.ndarray) -> np.ndarray:
    """Return a, b, c and d of each cell of some heads' surface, (cells, cells, 2, heads, 2)."""
    near, far = (
        np.stack([ends[:, :, :-1], np.diff(ends, axis=2)], axis=-1)
        for ends in (knots[:, :-1], knots[:, 1:])
    )
    return np.moveaxis(np.stack([near, far - near]), 1, 3).transpose(1, 2, 0, 3, 4)


def _listed(
    knots: np.ndarray, cells_of: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which of them each four heads have, where their lists end, and the cells of all.

    A list of odd length ends with one that is 0 everywhere, as two are added at once: one more
    loop for the last one would take longer to compile than this takes to add.
    """
    M = len(knots)
    padded = np.zeros((-(-M // HEADS) * HEADS, *knots.shape[1:]))
    padded[:M] = knots
    listed: list[int] = []
    ends, tables = [0], []
    for block in padded.reshape(-1, HEADS, *knots.shape[1:]):
        bent = block.reshape(HEADS, block.shape[1], -1).any(axis=(0, 2))
        numbers = np.flatnonzero(bent).tolist()
        tables += [cells_of(block[:, number]) for number in numbers]
        if len(numbers) % 2:
            numbers.append(numbers[-1])
            tables.append(np.zeros_like(tables[-1]))
        listed += numbers
        ends.append(len(listed))
    cells = aligned(sum(table.size for table in tables), np.float32)
    cells[:] = np.concatenate([table.reshape(-1) for table in [*tables, np.empty(0)]])
    return np.array(listed, np.int64), np.array(ends, np.int64), cells
