"""Training rows, and how they are dealt into random batches."""

__all__ = ["Arrays", "random_batches", "request_batches"]

from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.paper.losses import MOST_OBJECTIVES, Patterns
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import inline_kernel, kernel


class Arrays:
    """Scores, context codes, labels and perhaps weights of the same rows.

    A batch is a view that gathers each tensor at its first use, so a loss that only needs labels
    does not pay for the rest. Labels of 0 and 1 are kept as patterns, one number per row.

    Args:
        scores: (rows, objectives), float32.
        context: (rows, features), codes.
        labels: (rows, objectives), of any type; returned as float32.
        sample_weight: (rows,).
        request: (rows,), whole numbers that name requests.

    >>> rows = Arrays(torch.eye(3), torch.zeros(3, 0), torch.tensor([[1], [0], [1]]))
    >>> rows.batch(torch.tensor([2, 0])).labels.tolist()
    [[1.0], [1.0]]
    """

    def __init__(
        self,
        scores: Tensor,
        context: Tensor,
        labels: Tensor | Patterns,
        sample_weight: Tensor | None = None,
        request: Tensor | None = None,
        *,
        index: Tensor | None = None,
    ) -> None:
        if isinstance(labels, Tensor) and _have_patterns(labels):
            labels = Patterns.of(labels)
        self._whole = (scores, context, labels, sample_weight, request)
        self._index = index

    def __len__(self) -> int:
        return len(self._whole[0] if self._index is None else self._index)

    def batch(self, index: Tensor) -> "Arrays":
        """Return some of all rows."""
        return Arrays(*self._whole, index=index)

    @cached_property
    def scores(self) -> Tensor:
        """Scores, (rows, objectives)."""
        return self._rows_of(self._whole[0])

    @cached_property
    def context(self) -> Tensor:
        """Context codes, (rows, features)."""
        return self._rows_of(self._whole[1])

    @cached_property
    def labels(self) -> Tensor:
        """Labels, (rows, objectives), float32."""
        known = self.patterns
        return known.labels if isinstance(known, Patterns) else known.to(torch.float32)

    @cached_property
    def patterns(self) -> Tensor | Patterns:
        """Labels as patterns, or as they are where they are not all 0 or 1."""
        whole = self._whole[2]
        if isinstance(whole, Tensor):
            return self._rows_of(whole)
        return whole if self._index is None else whole.take(self._index)

    @cached_property
    def sample_weight(self) -> Tensor | None:
        """Row weights, (rows,), if there are any."""
        whole = self._whole[3]
        return None if whole is None else self._rows_of(whole)

    @cached_property
    def request(self) -> Tensor | None:
        """The request of each row, (rows,), if that is known."""
        whole = self._whole[4]
        return None if whole is None else self._rows_of(whole)

    def _rows_of(self, whole: Tensor) -> Tensor:
        return whole if self._index is None else whole.index_select(0, self._index)


def _have_patterns(labels: Tensor) -> bool:
    if labels.is_floating_point() or labels.ndim != 2 or not labels.numel():
        return False
    few = 0 < labels.shape[1] <= MOST_OBJECTIVES
    return few and int(labels.max()) <= 1 and int(labels.min()) >= 0


def random_batches(rows: int, batches: int, seed: list[int]) -> list[NDArray[np.int64]]:
    """Deal rows 0 … rows−1 into batches of equal size, give or take one, each in ascending order.

    Only the choice of rows is random: their order within a batch does not matter to a loss, and
    memory is read faster in order. So the numbers of the batches are shuffled and not the rows.

    >>> [batch.tolist() for batch in random_batches(7, 2, seed=[0])]
    [[3, 4, 5, 6], [0, 1, 2]]
    """
    sizes = np.full(batches, rows // batches)
    sizes[: rows % batches] += 1
    # Small numbers, as a shuffle jumps all over them.
    batch_of = np.repeat(np.arange(batches, dtype=np.min_scalar_type(batches)), sizes)
    _shuffle(batch_of, np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    return np.split(np.argsort(batch_of, kind="stable"), np.cumsum(sizes)[:-1])


def request_batches(
    starts: NDArray[np.int64], batches: int, seed: list[int]
) -> list[NDArray[np.int64]]:
    """Deal whole requests into batches of equally many requests, give or take one.

    Args:
        starts: Where each request begins, and the end; the rows of a request are adjacent.
        batches: How many.
        seed: Decides which request is in which batch.

    >>> [batch.tolist() for batch in request_batches(np.array([0, 2, 5, 6]), 2, seed=[0])]
    [[0, 1, 5], [2, 3, 4]]
    """
    requests = len(starts) - 1
    if batches > requests:
        raise UsageError(
            f"Batches hold whole requests, of which there are {requests:,}. Got {batches:,} "
            "batches; raise `batch_rows`."
        )
    size = np.diff(starts)
    dealt = []
    for chosen in random_batches(requests, batches, seed):
        # From the first row of each request on, one after the other.
        first = np.repeat(starts[chosen] - np.cumsum(size[chosen]) + size[chosen], size[chosen])
        dealt.append(first + np.arange(len(first)))
    return dealt


@inline_kernel
def _mix(state: Any) -> Any:
    """Return the random number of a state (Steele, Lea & Flood, 2014, SplitMix64)."""
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def _shuffle(values: Any, seed: Any) -> None:
    """Shuffle in place (Fisher and Yates)."""
    state = np.uint64(seed)
    for i in range(len(values) - 1, 0, -1):
        state += np.uint64(0x9E3779B97F4A7C15)
        # The high half of a 32 by 32 bit product is a number from 0 to i, even to 2⁻³² · i.
        j = np.uint64(((_mix(state) >> np.uint64(32)) * np.uint64(i + 1)) >> np.uint64(32))
        values[i], values[j] = values[j], values[i]
