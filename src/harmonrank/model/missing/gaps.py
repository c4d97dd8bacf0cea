"""Gaps: coordinates that are missing, and what the density says of them given those that are there.

Given the context the coordinates are normal with precision P (see `Density`). With m the missing
ones of a row and o the others, both as deviations from the context's mean, the missing ones are
normal with

    mean −P_mm⁻¹ P_mo o,   covariance P_mm⁻¹.

Both depend on the context and on which are missing, not on the row, so they are computed once for
each such pair; with nothing observed they are the density of the context itself.
"""

__all__ = ["Gaps", "MissingDensity", "distinct_sets"]

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.model.density.density import Density, blocks_of
from harmonrank.support.kernel import kernel

_BITS = 62  # So many flags fit into a number.


@dataclass(frozen=True)
class MissingDensity:
    """The density of what is missing, for pairs of a context and the set of missing coordinates.

    Attributes:
        gain: (pairs, M, M) deviations, with 0 for a missing one, to conditional means of the
            missing ones; rows of those that are there are 0.
        root: (pairs, M, M) L with L Lᵀ the conditional covariance, 0 but for the missing ones.
    """

    gain: np.ndarray
    root: np.ndarray

    @classmethod
    def of(cls, precision: np.ndarray, missing: np.ndarray) -> "MissingDensity":
        """Condition normal draws of precision (pairs, M, M) on what (pairs, M) flags leave.

        >>> precision = np.array([[[2.0, -1.0], [-1.0, 2.0]]])
        >>> missing = MissingDensity.of(precision, np.array([[True, False]]))
        >>> missing.gain[0, 0, 1], missing.covariance[0, 0, 0].round(9)
        (np.float64(0.5), np.float64(0.5))
        """
        eye = np.eye(precision.shape[1])
        both = missing[:, :, None] & missing[:, None, :]
        # With a unit matrix in place of those that are there, one inverse serves all patterns.
        covariance = np.where(both, np.linalg.inv(np.where(both, precision, eye)), 0.0)
        across = np.where(missing[:, :, None] & ~missing[:, None, :], precision, 0.0)
        root = np.linalg.cholesky(np.where(both, covariance, eye))
        return cls(-(covariance @ across), np.where(both, root, 0.0))

    @property
    def covariance(self) -> np.ndarray:
        """The conditional covariance, (pairs, M, M)."""
        covariance: np.ndarray = self.root @ np.swapaxes(self.root, 1, 2)
        return covariance


@dataclass(frozen=True)
class Gaps:
    """Rows that miss something, in the order of pairs of a context and the set of missing ones.

    Attributes:
        rows: (n,) their row numbers.
        pair: (n,) which pair each has, ascending.
        context: (pairs,) the number of its context.
        missing: (pairs, M) which coordinates are missing.
    """

    rows: np.ndarray
    pair: np.ndarray
    context: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(cls, coordinates: np.ndarray, of_row: np.ndarray) -> "Gaps":
        """Find the NaN among (rows, M) coordinates, of rows with these numbers of contexts.

        >>> gaps = Gaps.of(np.array([[1.0, np.nan], [0.0, 0.0], [np.nan, 2.0]]), np.zeros(3, int))
        >>> gaps.rows.tolist(), gaps.missing.tolist()
        ([2, 0], [[True, False], [False, True]])
        """
        lost = np.isnan(coordinates)
        rows = np.flatnonzero(lost.any(axis=1))
        sets, which = distinct_sets(lost[rows])
        number = of_row[rows] * max(len(sets), 1) + which
        order = np.argsort(number, kind="stable")
        ordered = number[order]
        first = np.diff(ordered, prepend=-1) > 0
        pairs = ordered[first]
        context, of_set = np.divmod(pairs, max(len(sets), 1))
        return cls(rows[order], np.cumsum(first) - 1, context, sets[of_set])

    def blocks(self, more: int = 0) -> Iterator[tuple[slice, slice]]:
        """Cut pairs, and with them rows, so that what is computed of a pair stays in bounds.

        Args:
            more: How many numbers are computed of each pair, beside its conditional density.
        """
        M = self.missing.shape[1]
        for block in blocks_of(len(self.context), 6 * M * M + more):
            low, high = np.searchsorted(self.pair, [block.start, block.stop])
            yield block, slice(int(low), int(high))

    def conditional(self, density: Density, contexts: np.ndarray, block: slice) -> MissingDensity:
        """Return the density of what is missing, in units of the fit, for a block of pairs."""
        precision = density.precision_of(contexts[self.context[block]])
        return MissingDensity.of(precision, self.missing[block])

    def fill(self, coordinates: np.ndarray, density: Density, contexts: np.ndarray) -> None:
        """Write the conditional mean of each missing coordinate in its place."""
        for block, rows in self.blocks():
            conditional = self.conditional(density, contexts, block)
            self.fill_block(coordinates, density, contexts, block, rows, conditional)

    def fill_block(
        self,
        coordinates: np.ndarray,
        density: Density,
        contexts: np.ndarray,
        block: slice,
        rows: slice,
        conditional: MissingDensity,
    ) -> None:
        """Write conditional means for the rows of a block of pairs with these densities."""
        centre = density.centre_of(contexts[self.context[block]])
        pair, missing = self.pair[rows] - block.start, self.missing[block]
        _fill(self.rows[rows], pair, missing, conditional.gain, centre, density.scale, coordinates)


def distinct_sets(lost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of (rows, M) flags, and which of them each row has.

    >>> distinct_sets(np.array([[True, False], [False, True], [True, False]]))[1].tolist()
    [0, 1, 0]
    """
    M = lost.shape[1]
    if M > _BITS:
        sets, which = np.unique(lost, axis=0, return_inverse=True)
        return sets, which.reshape(-1)
    number = np.zeros(len(lost), np.int64)
    for m in range(M):
        number |= lost[:, m].astype(np.int64) << m
    numbers, which = np.unique(number, return_inverse=True)
    return (numbers[:, None] >> np.arange(M) & 1).astype(bool), which


@kernel
def _fill(
    rows: Any, pair: Any, missing: Any, gain: Any, centre: Any, scale: Any, coordinates: Any
) -> None:
    """Write centre + scale·gain·away where something is missing; away is 0 there."""
    M = coordinates.shape[1]
    away = np.empty(M)
    for i in range(len(rows)):
        row, p = rows[i], pair[i]
        for m in range(M):
            away[m] = 0.0 if missing[p, m] else (coordinates[row, m] - centre[p, m]) / scale[m]
        for m in range(M):
            if missing[p, m]:
                mean = 0.0
                for j in range(M):
                    mean += gain[p, m, j] * away[j]
                coordinates[row, m] = centre[p, m] + scale[m] * mean
