"""Soft ranks within requests of different lengths, each by itself."""

__all__ = ["RequestRanks", "request_order"]

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonrank.metrics._sort import sort_into
from harmonrank.paper.soft_rank._isotonic import project_rows, pull_back_rows
from harmonrank.paper.soft_rank._scale import scale_rows
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
class RequestRanks:
    """`SoftRanks` of each request: `solve`, then `gradient`; eq. 11 of docs/soft-ranks.md.

    Mean, standard deviation and number of items are those of the request.

    Attributes:
        order, starts: Of `request_order`.
        weights: (1, n) or None, as `SoftRanks` has them.
        pooled: After `solve`, how many items have a gradient, (1,).

    >>> ranks = RequestRanks(np.arange(4), np.array([0, 2, 4]), strength=0.1)
    >>> ranks.solve(np.array([[0.1, 0.9, 0.4, 0.2]]))
    array([[1., 2., 2., 1.]])
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    strength: float = 1.0
    kl: bool = False
    standardise: bool = True
    weights: NDArray[np.float64] | None = None

    def solve(self, scores: Array) -> Array:
        """Return the soft rank of each score, (1, n), within its request."""
        n, requests = scores.shape[1], len(self.starts) - 1
        self._scores = np.ascontiguousarray(scores[:, self.order])
        self._sorted = None if self.weights is None else self.weights[:, self.order]
        self._centre, self._factor, self._spread = np.empty((3, requests))
        self._block, self._norm = np.empty((1, n), np.uint32), np.empty((1, n // 2 + requests + 1))
        self._blocks, pooled = np.empty(requests, np.int64), np.empty(requests)
        self._ranks = np.empty((1, n), np.float64 if self.kl else scores.dtype)
        bad = _solve(
            self._scores, self._sorted, self.starts, self.strength, self.kl, self.standardise,
            self._centre, self._factor, self._spread, self._ranks, self._block, pooled,
            self._blocks, self._norm,
        )  # fmt: skip
        if bad:
            count = int((~np.isfinite(scores)).sum())
            raise UsageError(
                f"`scores` must be finite. Got {count} NaN or infinite: lower the learning rate, "
                "or drop these rows."
            )
        self.pooled = np.array([pooled.sum()])
        return self._back(self._ranks)

    def gradient(self, upstream: Array) -> Array:
        """Return ∂L/∂scores, given ∂L/∂ranks of the scores that were solved last, (1, n)."""
        out = np.empty_like(self._scores)
        _pull_back(
            np.ascontiguousarray(upstream[:, self.order]), self._scores, self._ranks, self._sorted,
            self.starts, self._centre, self._factor, self._spread, self.kl, self._block,
            self._blocks, self._norm, out,
        )  # fmt: skip
        return self._back(out)

    def _back(self, values: Array) -> Array:
        """Return values of sorted rows in the order in which rows came."""
        out = np.empty_like(values)
        out[:, self.order] = values
        return out


@kernel
def _solve(
    scores: Array, weights: Any, starts: Array, strength: float, kl: bool, standardise: bool,
    centre: Array, factor: Array, spread: Array, ranks: Array, block: Array, pooled: Array,
    blocks: Array, norm: Array,
) -> bool:  # fmt: skip
    """Solve one request after the other; return whether a score is not finite."""
    ascending, order = np.empty_like(scores), np.empty(scores.shape, np.int32)
    low, high = np.empty(starts.size - 1), np.empty(starts.size - 1)
    for g in range(starts.size - 1):
        a, b = starts[g], starts[g + 1]
        own = None if weights is None else weights[:, a:b]
        one = slice(g, g + 1)
        if not scale_rows(
            scores[:, a:b], own, strength, kl, standardise, low[one], high[one], centre[one],
            factor[one], spread[one],
        ):  # fmt: skip
            return True
        sort_into(scores[:, a:b], low[one], high[one], ascending[:, a:b], order[:, a:b])
        first = a // 2 + g
        project_rows(
            ascending[:, a:b], order[:, a:b], own, centre[one], factor[one], kl, ranks[:, a:b],
            block[:, a:b], pooled[one], blocks[one], norm[:, first : first + (b - a) // 2 + 1],
        )  # fmt: skip
    return False


@kernel
def _pull_back(
    upstream: Array, scores: Array, ranks: Array, weights: Any, starts: Array, centre: Array,
    factor: Array, spread: Array, kl: bool, block: Array, blocks: Array, norm: Array, out: Array,
) -> None:  # fmt: skip
    for g in range(starts.size - 1):
        a, b = starts[g], starts[g + 1]
        one, first = slice(g, g + 1), a // 2 + g
        pull_back_rows(
            upstream[:, a:b], scores[:, a:b], ranks[:, a:b],
            None if weights is None else weights[:, a:b], centre[one], factor[one], spread[one],
            kl, block[:, a:b], blocks[one], norm[:, first : first + (b - a) // 2 + 1], out[:, a:b],
        )  # fmt: skip
