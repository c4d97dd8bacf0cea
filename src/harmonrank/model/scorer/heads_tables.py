"""Head tables: what scoring looks up, laid out for the kernels.

Given its context a head is linear in the coordinates but for curves and surfaces. So each context
has a record of numbers; curves and surfaces have tables of their own.
"""

__all__ = ["ContextRecords", "CoordinateCells", "HeadTables"]

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harmonrank.model.coordinate import Coordinate
from harmonrank.model.linear.head_columns import HeadColumns
from harmonrank.model.linear.heads import Heads
from harmonrank.model.scorer.curves import Curves
from harmonrank.model.scorer.head_room import aligned
from harmonrank.support.simd import SINGLES


class CoordinateCells(NamedTuple):
    """The scale of each score as cells of equal width.

    Attributes:
        low: (M,) lower end of the grid.
        per_unit: (M,) cells per unit.
        table: Lower end and step of each cell, flat.
        straight: (M,) whether the coordinate is the logit.
    """

    low: np.ndarray
    per_unit: np.ndarray
    table: np.ndarray
    straight: np.ndarray

    @classmethod
    def of(cls, map_: Coordinate) -> "CoordinateCells":
        """Lay a coordinate out."""
        cells = map_.table.shape[1] - 1
        grid = np.linspace(map_.low, map_.high, cells + 1, axis=1)
        straight = (map_.table == grid).all(axis=1) & (map_.below == 1) & (map_.above == 1)
        width = (map_.high - map_.low) / cells
        per_unit = np.divide(1.0, width, out=np.zeros(len(width)), where=width > 0)
        # Beyond the grid are two more cells, of the outer slopes.
        below, above = (map_.below * width)[:, None], (map_.above * width)[:, None]
        ends = np.concatenate([map_.table[:, :1] - below, map_.table], axis=1)
        steps = np.concatenate([below, np.diff(map_.table, axis=1), above], axis=1)
        return cls(map_.low, per_unit, np.stack([ends, steps], axis=2).reshape(-1), straight)


class ContextRecords(NamedTuple):
    """What scoring looks up of some contexts.

    Attributes:
        record: How many numbers a context has.
        columns: Of its linear map.
        numbers: The records, one after the other.
        unit: (M,) what a coordinate is multiplied with to be an input of the residual.
    """

    record: int
    columns: int
    numbers: np.ndarray
    unit: np.ndarray


@dataclass(frozen=True)
class HeadTables:
    """The tables of fitted heads, but for those of the contexts, which may be too many.

    Attributes:
        heads: What they are made of.
        width: Columns of a context's linear map: logits, and surprises where they are used.
        record: Numbers per context.
        coordinate: Of the scores.
        unit: (M,) what a coordinate is multiplied with to be an input of the residual.
        curves: Curves and surfaces.
    """

    heads: Heads
    width: int
    record: int
    coordinate: CoordinateCells
    unit: np.ndarray
    curves: Curves

    @classmethod
    def of(cls, heads: Heads) -> "HeadTables":
        """Lay out what scoring needs; surprises only if some curve or surface uses them."""
        M, curves = len(heads.theta), Curves.of(heads.residual)
        width = 2 * M if curves.last >= M else M
        inputs = 0 if curves.last < 0 else M if curves.last < M else 3 * M
        unit = heads.standard(np.zeros((1, len(heads.slots)), np.int64))[0]
        coordinate = CoordinateCells.of(heads.coordinate)
        return cls(heads, width, (1 + M) * width + inputs, coordinate, unit, curves)

    @property
    def made(self) -> int:
        """How many numbers are made of a context on the way to its record."""
        M = len(self.heads.theta)
        return (M + 1) * M * HeadColumns(M).width

    def of_contexts(self, contexts: np.ndarray) -> np.ndarray:
        """Return the records of some contexts, (contexts, record).

        A record is a linear map, 1 + M rows of which the first is added and the others multiplied
        with a coordinate; then what makes inputs of coordinates and surprises: shift, mean and one
        over the standard deviation of the surprise, as far as they are used.
        """
        intercept, slope = self.heads.affine(contexts)
        C, M = intercept.shape
        maps = np.empty((C, 1 + M, self.width))
        maps[:, 0, :M], maps[:, 1:, :M] = intercept, np.swapaxes(slope, 1, 2)
        unit, shift, mean, surprise = self.heads.standard(contexts)
        if self.width > M:
            maps[:, 0, M:] = np.einsum("cij,cj->ci", surprise, shift - mean)
            maps[:, 1:, M:] = np.swapaxes(surprise * unit, 1, 2)
        deviation = np.sqrt(np.einsum("cjj->cj", surprise))
        rest = np.concatenate([shift, mean, 1 / deviation], axis=1)
        records: np.ndarray = np.concatenate([maps.reshape(C, -1), rest], axis=1)[:, : self.record]
        return records

    @property
    def padded(self) -> int:
        """How many numbers a record has in the kernels' layout."""
        width, rows = _simd_padded(self.width), 1 + len(self.heads.theta)
        return rows * width + _simd_padded(self.record - rows * self.width)

    def records(self, contexts: np.ndarray) -> ContextRecords:
        """Return the records of some contexts for the kernels.

        Each row of a map begins a cache line, and heads are in the order of `Curves`.
        """
        plain = self.of_contexts(contexts)
        C, M, width = len(plain), len(self.heads.theta), _simd_padded(self.width)
        end = (1 + M) * self.width
        maps = plain[:, :end].reshape(C, 1 + M, self.width)
        flat = aligned(C * self.padded, np.float64)
        records = flat.reshape(C, self.padded)
        rows = records[:, : (1 + M) * width].reshape(C, 1 + M, width)
        rows[:, :, :M] = maps[:, :, self.curves.heads]
        rows[:, :, M : self.width] = maps[:, :, M:]
        records[:, (1 + M) * width :][:, : self.record - end] = plain[:, end:]
        return ContextRecords(self.padded, self.width, flat, self.unit)


def _simd_padded(size: int) -> int:
    return -(-size // SINGLES) * SINGLES
