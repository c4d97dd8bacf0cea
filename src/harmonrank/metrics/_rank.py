"""Exact ranks."""

__all__ = ["rank"]

import math
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from harmonrank.metrics._sort import extremes, sort_rows
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[Any]

Scores = TypeVar("Scores", "Tensor", NDArray[np.generic])


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
