"""Soft ranks of arrays, without a graph: of all scores, or within parts of them."""

__all__ = ["SoftRanks", "request_order"]

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._sort import sort_into
from harmonrank.paper.soft_rank._isotonic import project, pull_back
from harmonrank.paper.soft_rank._scale import scale
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel

Array = NDArray[Any]


def request_order(groups: ArrayLike, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows in the order of their requests, and where each request begins, and the end.

    >>> request_order([7, 3, 7], 3)
    (array([1, 0, 2]), array([0, 1, 3]))
    """
    ids = np.asarray(groups)
    if ids.shape != (rows,):
        raise UsageError(f"`groups` must have one id per score, ({rows},). Got {ids.shape}.")
    codes = np.unique(ids, return_inverse=True)[1].reshape(-1)
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=0))])
    return np.argsort(codes, kind="stable"), starts.astype(np.int64)


@dataclass
class SoftRanks:
    """`soft_rank` of the parts of a vector: `solve`, then `gradient` of the same scores.

    Mean, standard deviation and number of items are those of the part (eq. 11 of
    docs/soft-ranks.md); all scores are one part if nothing else is said.

    Attributes:
        strength: How far ranks bend towards the scores.
        kl: Entropic instead of quadratic regularisation.
        standardise: Whether z is free of the unit of the scores.
        weights: (n,) or None.
        starts: Where each part begins, and the end.
        order: The scores in the order of their parts; None if they lie so.
        pooled: After `solve`, how many items of each part have a gradient.

    >>> ranks = SoftRanks(strength=4.0).solve(np.array([0.1, 0.9, 0.2, 0.4]))
    >>> ranks.round(4)
    array([1.5674, 4.    , 1.8919, 2.5407])
    >>> SoftRanks(0.1, starts=np.array([0, 2, 4])).solve(np.array([0.1, 0.9, 0.4, 0.2]))
    array([1., 2., 2., 1.])
    """

    strength: float = 1.0
    kl: bool = False
    standardise: bool = True
    weights: NDArray[np.float64] | None = None
    starts: NDArray[np.int64] | None = None
    order: NDArray[np.int64] | None = None

    def solve(self, scores: Array) -> Array:
        """Return the soft rank of each score, (n,), within its part."""
        n = len(scores)
        self._ends = np.array([0, n]) if self.starts is None else self.starts
        parts = len(self._ends) - 1
        self._scores = np.ascontiguousarray(self._sorted(scores))
        self._weights = None if self.weights is None else self._sorted(self.weights)
        # The gradient of kl multiplies by the ranks, so they keep all their digits.
        self._ranks = np.empty(n, np.float64 if self.kl else scores.dtype)
        self._block, self._norm = np.empty(n, np.uint32), np.empty(n // 2 + parts + 1)
        self._scales, self._counts = np.empty((parts, 3)), np.empty((parts, 2), np.int64)
        options = self.strength, self.kl, self.standardise
        finite = _solve(
            self._scores, self._weights, self._ends, options, self._ranks, self._block, self._norm,
            self._scales, self._counts,
        )  # fmt: skip
        if not finite:
            raise _not_finite(scores, self._ends if self.order is None else self._ends[[0, -1]])
        self.pooled = self._counts[:, 0]
        return self._unsorted(self._ranks)

    def gradient(self, upstream: Array) -> Array:
        """Return ∂L/∂scores, given ∂L/∂ranks of the scores that were solved last, (n,)."""
        out = np.empty_like(self._scores)
        _pull_back(
            np.ascontiguousarray(self._sorted(upstream)), self._scores, self._weights, self._ends,
            self.kl, self._ranks, self._block, self._norm, self._scales, self._counts, out,
        )  # fmt: skip
        return self._unsorted(out)

    def _sorted(self, values: Array) -> Array:
        return values if self.order is None else values[self.order]

    def _unsorted(self, values: Array) -> Array:
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out


@kernel
def _solve(
    scores: Array, weights: Any, starts: Array, options: Any, ranks: Array, block: Array,
    norm: Array, scales: Array, counts: Array,
) -> bool:  # fmt: skip
    """Solve one part after the other; return whether all scores are finite."""
    strength, kl, standardise = options
    ascending, order = np.empty_like(scores), np.empty(scores.size, np.int32)
    ends = np.empty((2, 1))
    for g in range(starts.size - 1):
        a, b = starts[g], starts[g + 1]
        own = None if weights is None else weights[a:b]
        finite, ends[0, 0], ends[1, 0], centre, factor, spread = scale(
            scores[a:b], own, strength, kl, standardise
        )
        if not finite:
            return False
        part, to, places = scores[a:b], ascending[a:b], order[a:b]
        sort_into(part.reshape(1, -1), ends[0], ends[1], to.reshape(1, -1), places.reshape(1, -1))
        scales[g] = centre, factor, spread
        counts[g] = project(
            to, places, own, centre, factor, kl, ranks[a:b], block[a:b], norm[a // 2 + g :]
        )
    return True


@kernel
def _pull_back(
    upstream: Array, scores: Array, weights: Any, starts: Array, kl: bool, ranks: Array,
    block: Array, norm: Array, scales: Array, counts: Array, out: Array,
) -> None:  # fmt: skip
    for g in range(starts.size - 1):
        a, b, first = starts[g], starts[g + 1], starts[g] // 2 + g
        own = None if weights is None else weights[a:b]
        centre, factor, spread = scales[g]
        pull_back(
            upstream[a:b], scores[a:b], ranks[a:b], own, centre, factor, spread, kl, block[a:b],
            norm[first : first + counts[g, 1]], out[a:b],
        )  # fmt: skip


def _not_finite(scores: Array, ends: Array) -> UsageError:
    bad = np.flatnonzero(~np.isfinite(scores))
    row = int(np.searchsorted(ends, bad[0], side="right")) - 1
    position = bad[0] - ends[row]
    where = f"{position}" if len(ends) == 2 else f"{position} of row {row}"
    return UsageError(
        f"`scores` must be finite. Got {len(bad)} NaN or infinite, the first at position {where}: "
        "lower the learning rate, or drop these rows."
    )
