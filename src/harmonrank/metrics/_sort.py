"""Exact ranks, and a stable argsort of floats, in linear time on usual data.

Two counting passes put values into equally wide cells (eight or more per item, so few items share
one). An insertion sort then orders the values within cells. Data too uneven for that (long tails,
infinities) are sorted by the digits of their bit patterns instead. Both ways are stable, so they
give the same result.
"""

import math
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import inline_kernel, kernel

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[Any]

_SMALL = 32  # Below this an insertion sort alone is fastest.
_MOVES = 12  # Moves per item before cells count as too crowded and digits take over.
_DIGIT = 11  # Bits per digit: 2048 counters, six passes for float64 and four for float32.


Scores = TypeVar("Scores", "Tensor", NDArray[np.generic])


def argsort(values: NDArray[np.floating]) -> NDArray[np.int32]:
    """Return the positions that put a vector, or every row, into ascending order.

    Ties keep their order. −0.0 and 0.0 are tied, infinities are allowed, NaN is not (the caller
    checks).

    >>> argsort(np.array([0.5, -1.0, 0.5, 0.0]))
    array([1, 3, 0, 2], dtype=int32)
    >>> argsort(np.array([[0.5, -1.0], [0.0, 1.0]]))
    array([[1, 0],
           [0, 1]], dtype=int32)
    """
    if values.ndim not in (1, 2) or values.dtype not in (np.float32, np.float64):
        raise UsageError(
            "`values` must be a vector or rows of them, and float32 or float64. "
            f"Got {values.dtype} of shape {values.shape}."
        )
    rows = np.atleast_2d(np.ascontiguousarray(values))
    order: NDArray[np.int32] = sort_rows(rows, *extremes(rows))[1]
    return order.reshape(values.shape)


def extremes(values: Array) -> tuple[Array, Array]:
    """Return the lowest and the highest value of every row; NaN if there is a NaN in it."""
    if values.shape[1] == 0:
        return np.zeros(len(values), values.dtype), np.zeros(len(values), values.dtype)
    return np.minimum.reduce(values, axis=1), np.maximum.reduce(values, axis=1)


def sort_rows(values: Array, low: Array, high: Array) -> tuple[Array, NDArray[np.int32]]:
    """Sort every row of a contiguous (rows, n) array; return sorted values and their positions.

    `low` and `high` are the extremes of each row, which every caller needs for a check of its own.
    """
    ascending = np.empty_like(values)
    order = np.empty(values.shape, np.int32)
    sort_into(values, low, high, ascending, order)
    return ascending, order


@kernel
def _settle(values: Array, order: Array, budget: int) -> bool:
    """Sort a nearly sorted vector in place by insertion; give up (False) after `budget` moves."""
    for i in range(1, values.size):
        value = values[i]
        if values[i - 1] <= value:
            continue
        position, j = order[i], i
        while j > 0 and values[j - 1] > value:
            values[j], order[j] = values[j - 1], order[j - 1]
            j -= 1
        values[j], order[j] = value, position
        budget -= i - j
        if budget < 0:
            return False
    return True


@inline_kernel
def _cell(value: float, low: float, per_unit: float, last: int) -> int:
    """Number the equally wide cell of a value; rounding never swaps the cells of two values."""
    return min(max(int((value - low) * per_unit), 0), last)


@inline_kernel
def _starts(counts: Array) -> None:
    """Turn counts into the first free place of each cell, in place."""
    total = 0
    for k in range(counts.size):
        total, counts[k] = total + counts[k], total


@kernel
def _sort_by_cells(values: Array, ascending: Array, order: Array, low: float, high: float) -> bool:
    """Sort by two counting passes, over the low and then the high half of the cell number."""
    n = values.size
    half = (int(np.ceil(np.log2(n))) + 4) // 2
    bits, last = np.uint64(half), (1 << (2 * half)) - 1
    mask, per_unit = np.uint64((1 << half) - 1), last / (high - low)
    fine, coarse = np.zeros(1 << half, np.uint32), np.zeros(1 << half, np.uint32)
    # Unsigned positions spare every access a test for negative ones.
    for i in range(n):
        k = np.uint64(_cell(values[i], low, per_unit, last))
        fine[k & mask] += 1
        coarse[k >> bits] += 1
    _starts(fine)
    _starts(coarse)
    between, positions = np.empty_like(values), np.empty_like(order)
    for i in range(n):
        k = np.uint64(_cell(values[i], low, per_unit, last)) & mask
        between[fine[k]], positions[fine[k]] = values[i], i
        fine[k] += 1
    for i in range(n):
        k = np.uint64(_cell(between[i], low, per_unit, last)) >> bits
        ascending[coarse[k]], order[coarse[k]] = between[i], positions[i]
        coarse[k] += 1
    return _settle(ascending, order, _MOVES * n)


@kernel
def _ordered_bits(values: Array) -> Array:
    """Map floats to integers of the same order: flip all bits of negatives, else the sign."""
    # Adding zero turns −0.0 into 0.0, so the two are tied. The low digits of widened float32 are
    # all zero, and cost no pass.
    bits = (values.astype(np.float64) + 0.0).view(np.int64)
    for i in range(bits.size):
        bits[i] ^= (bits[i] >> 63) | np.int64(-(1 << 63))
    return bits.view(np.uint64)


@kernel
def _sort_by_digits(values: Array, ascending: Array, order: Array) -> None:
    """Sort by the digits of the bit pattern, lowest first; a digit that all share costs no move."""
    n = values.size
    keys, other_keys = _ordered_bits(values), np.empty(n, np.uint64)
    here, there = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    mask = np.uint64((1 << _DIGIT) - 1)
    for shift in range(0, 64, _DIGIT):
        counts = np.zeros(1 << _DIGIT, np.int32)
        for i in range(n):
            counts[(keys[i] >> np.uint64(shift)) & mask] += 1
        if counts.max() == n:
            continue
        _starts(counts)
        for i in range(n):
            k = (keys[i] >> np.uint64(shift)) & mask
            other_keys[counts[k]], there[counts[k]] = keys[i], here[i]
            counts[k] += 1
        keys, other_keys = other_keys, keys
        here, there = there, here
    for i in range(n):
        order[i] = here[i]
        ascending[i] = values[here[i]]


@kernel
def _sort_row(values: Array, low: float, high: float, ascending: Array, order: Array) -> None:
    n = values.size
    if n <= _SMALL or low == high:
        for i in range(n):
            ascending[i], order[i] = values[i], i
        _settle(ascending, order, n * n)
        return
    sorted_by_cells = False
    # A width that overflows or vanishes has no cells.
    if np.isfinite(high - low) and np.isfinite(64 * n / (high - low)):
        sorted_by_cells = _sort_by_cells(values, ascending, order, low, high)
    if not sorted_by_cells:
        _sort_by_digits(values, ascending, order)


@kernel
def sort_into(values: Array, low: Array, high: Array, ascending: Array, order: Array) -> None:
    for row in range(values.shape[0]):
        bottom, top = np.float64(low[row]), np.float64(high[row])
        _sort_row(values[row], bottom, top, ascending[row], order[row])


def rank(scores: Scores) -> Scores:
    """Return ascending ranks 1..n along the last axis; tied scores share their mean rank.

    A numpy array gives a numpy array, a tensor a tensor on the same device. Ranks are float64
    whatever the scores are, since float32 cannot hold every half above 2²³. There is no gradient:
    that is what `soft_rank` is for.

    >>> rank(np.array([0.3, 0.1, 0.3, 0.9]))
    array([2.5, 1. , 2.5, 4. ])
    """
    if "torch" in sys.modules:  # Who has a tensor has imported PyTorch; an array needs none.
        import torch

        if isinstance(scores, torch.Tensor):
            # bfloat16 has no numpy counterpart; float32 holds all its values.
            held = scores.detach().cpu()
            held = held.float() if held.dtype in (torch.float16, torch.bfloat16) else held
            return torch.from_numpy(_rank_array(held.numpy())).to(scores.device)
    return _rank_array(np.asarray(scores))  # type: ignore[return-value]


def _rank_array(scores: NDArray[np.generic]) -> NDArray[np.float64]:
    if scores.ndim == 0:
        raise UsageError("`scores` must have at least one axis. Got a single number.")
    values = _as_floats(scores)
    rows = np.ascontiguousarray(values).reshape(math.prod(values.shape[:-1]), values.shape[-1])
    low, high = extremes(rows)
    if np.isnan(low).any():
        missing = np.isnan(rows)
        first = np.unravel_index(int(missing.argmax()), scores.shape)
        raise UsageError(
            f"`scores` must not hold NaN. Got {int(missing.sum())}, the first at position "
            f"{tuple(int(k) for k in first)}: drop or fill these rows."
        )
    ranks = np.empty(rows.shape)
    _mean_ranks(*sort_rows(rows, low, high), ranks)
    return ranks.reshape(scores.shape)


def _as_floats(scores: NDArray[np.generic]) -> NDArray[np.floating]:
    """Return float32 or float64 values of the same order and the same ties."""
    if scores.dtype.kind in "iub":
        whole = scores.astype(np.float64)
        if np.abs(whole).max(initial=0.0) > 2.0**53:
            raise UsageError(
                "`scores` must be below 2**53 as integers. Convert them to floats first."
            )
        return whole
    if scores.dtype.kind != "f":
        raise UsageError(f"`scores` must be numbers. Got {scores.dtype}.")
    return scores.astype(np.float32 if scores.dtype.itemsize <= 4 else np.float64, copy=False)


@kernel
def _mean_ranks(ascending: Array, order: Array, ranks: Array) -> None:
    n = ascending.shape[1]
    for row in range(ascending.shape[0]):
        start = 0
        while start < n:
            end = start + 1
            while end < n and ascending[row, end] == ascending[row, start]:
                end += 1
            for i in range(start, end):
                ranks[row, order[row, i]] = 0.5 * (start + end + 1)
            start = end
