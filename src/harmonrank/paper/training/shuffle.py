"""Shuffle: random batches whose rows are in order."""

__all__ = ["random_batches", "request_batches"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import inline_kernel, kernel


def random_batches(rows: int, batches: int, seed: list[int]) -> list[NDArray[np.int64]]:
    """Deal rows 0 … rows−1 into batches of equal size, give or take one, each in ascending order.

    Who is in which batch is as random as the seed; the order within a batch is nothing to a loss,
    and memory is read faster in order. So the batches' numbers are shuffled, not the rows, and the
    rows follow by counting.

    >>> [batch.tolist() for batch in random_batches(7, 2, seed=[0])]
    [[3, 4, 5, 6], [0, 1, 2]]
    """
    sizes = np.full(batches, rows // batches)
    sizes[: rows % batches] += 1
    # Small numbers, as a shuffle jumps all over them.
    batch_of = np.repeat(np.arange(batches, dtype=np.min_scalar_type(batches)), sizes)
    _shuffle(batch_of, np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    starts = np.cumsum(sizes) - sizes
    dealt = np.empty(rows, np.int64)
    _deal(batch_of, starts.copy(), dealt)
    return np.split(dealt, starts[1:])


def request_batches(
    starts: NDArray[np.int64], batches: int, seed: list[int]
) -> list[NDArray[np.int64]]:
    """Deal whole requests into batches of equally many requests, give or take one.

    Args:
        starts: Where each request begins, and the end; rows of a request lie together.
        batches: How many.
        seed: Decides who is in which batch.

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


@kernel
def _deal(batch_of: Any, free: Any, dealt: Any) -> None:
    """Write each row's number into the next free place of its batch."""
    for row in range(len(batch_of)):
        batch = np.uint64(batch_of[row])
        dealt[np.uint64(free[batch])] = row
        free[batch] += 1
