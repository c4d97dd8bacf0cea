"""Head tables: what scoring looks up, laid out for the kernels.

Given its context a head is linear in the coordinates but for curves and surfaces. So each context
has a record of numbers, and each knot of a curve or surface the values of eight heads side by side.
"""

__all__ = ["HeadTables"]

from dataclasses import dataclass

import numpy as np

from harmonrank.lanes import DOUBLES, SINGLES
from harmonrank.model.coordinate import Coordinate
from harmonrank.model.head_columns import HeadColumns
from harmonrank.model.heads import Heads
from harmonrank.model.residual import surface_pairs


@dataclass(frozen=True)
class HeadTables:
    """The tables of fitted heads, but for those of the contexts, which may be too many.

    Attributes:
        heads: What they are made of.
        width: Columns of a context's linear map: logits, and surprises where they are used.
        record: Numbers per context.
        coordinate: Ends of the grid, cells per unit, table, slopes, and whether the map is 1:1.
        bends: Units of the inputs, their first knot and their range; which inputs have curves, and
            the curves; which pairs have surfaces, and the surfaces. Tables are float32, flat.
    """

    heads: Heads
    width: int
    record: int
    coordinate: tuple[np.ndarray, ...]
    bends: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, heads: Heads) -> "HeadTables":
        """Lay out what scoring needs; surprises only if some curve or surface uses them."""
        M, found = len(heads.theta), heads.residual
        curved, joined = found.curved, found.joined
        pairs = np.array(surface_pairs(M), np.int64).reshape(-1, 2)[joined]
        last = max(curved.max(initial=-1), pairs.max(initial=-1))
        width = 2 * M if last >= M else M
        inputs = 0 if last < 0 else M if last < M else 3 * M
        bends = (
            heads.standard(np.zeros((1, len(heads.slots)), np.int64))[0],
            found.low.astype(np.float32),
            (1 / (found.high - found.low)).astype(np.float32),
            curved,
            _side_by_side(found.curve[:, curved]),
            pairs,
            _side_by_side(found.surface[:, joined]),
        )
        return cls(heads, width, (1 + M) * width + inputs, _coordinate(heads.coordinate), bends)

    @property
    def made(self) -> int:
        """How many numbers are made of a context on the way to its record."""
        M = len(self.heads.theta)
        return (M + 1) * M * HeadColumns(M).width

    def of_contexts(self, contexts: np.ndarray) -> np.ndarray:
        """Return the records of some contexts, one after the other.

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
        records = np.concatenate([maps.reshape(C, -1), rest], axis=1)[:, : self.record]
        # The last lanes that are loaded may lie beyond the last record.
        return np.append(records.reshape(-1), np.zeros(DOUBLES))


def _coordinate(map_: Coordinate) -> tuple[np.ndarray, ...]:
    cells = map_.table.shape[1] - 1
    grid = np.linspace(map_.low, map_.high, cells + 1, axis=1)
    straight = (map_.table == grid).all(axis=1) & (map_.below == 1) & (map_.above == 1)
    per_unit = cells / (map_.high - map_.low)
    return map_.low, map_.high, per_unit, map_.table, map_.below, map_.above, straight


def _side_by_side(tables: np.ndarray) -> np.ndarray:
    """Lay (M, …) tables out in blocks of eight heads, which stand side by side at each knot."""
    M = len(tables)
    padded = np.zeros((-(-M // SINGLES) * SINGLES, *tables.shape[1:]), np.float32)
    padded[:M] = tables
    blocks = padded.reshape(len(padded) // SINGLES, SINGLES, *tables.shape[1:])
    return np.ascontiguousarray(np.moveaxis(blocks, 1, -1)).reshape(-1)
