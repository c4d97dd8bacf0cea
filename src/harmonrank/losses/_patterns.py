"""Patterns: labels of 0 and 1, one small number per row instead of one per objective."""

__all__ = ["MOST_OBJECTIVES", "Patterns"]

from functools import cache, cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.errors import UsageError

MOST_OBJECTIVES = 12  # 4,096 patterns: their tables still fit the nearest cache.


class Patterns:
    """Which objectives are positive in each row: bit m of its code is the label of objective m.

    There are few patterns, so what depends on labels alone is computed once per pattern and looked
    up by row: Σ_i x_i y_im = Σ_k Y_km Σ_{i: code k} x_i, with Y the labels of pattern k.

    Args:
        codes: (rows,), int16: small, as a batch picks them from all over memory.
        objectives: How many bits of a code mean something.

    >>> patterns = Patterns.of(torch.tensor([[1, 0], [0, 1], [1, 1]]))
    >>> patterns.codes.tolist(), patterns.labels.tolist()
    ([1, 2, 3], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    """

    def __init__(self, codes: Tensor, objectives: int) -> None:
        if not 0 < objectives <= MOST_OBJECTIVES:
            raise UsageError(
                f"`objectives` must be from 1 to {MOST_OBJECTIVES} for label patterns. "
                f"Got {objectives}; pass the labels themselves."
            )
        self.codes, self.objectives = codes, objectives
        self._Y = _labels_of_patterns(objectives)  # (patterns, objectives)

    @classmethod
    def of(cls, labels: Tensor) -> Self:
        """Return the patterns of labels, (rows, objectives), that are all 0 or 1."""
        codes = torch.zeros(len(labels), dtype=torch.int16, device=labels.device)
        for bit in range(labels.shape[1]):
            codes |= labels[:, bit].to(torch.int16) << bit
        return cls(codes, labels.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and objectives, as of the labels themselves."""
        return len(self.codes), self.objectives

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: Tensor) -> "Patterns":
        """Return some rows."""
        return Patterns(self.codes.index_select(0, index), self.objectives)

    @property
    def labels(self) -> Tensor:
        """The labels, (rows, objectives), float32."""
        table = torch.from_numpy(self._Y).to(self.codes.device, torch.float32)
        return table.index_select(0, self.codes.to(torch.int64))

    def mass(
        self, v: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return Σ v y and Σ v (1−y) of each objective; v is ones if None."""
        count = np.bincount(self._host, v, minlength=len(self._Y))
        return count @ self._Y, count @ (1 - self._Y)

    def sums(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ_i x_i y_im."""
        total: NDArray[np.float64] = np.bincount(self._host, x, minlength=len(self._Y)) @ self._Y
        return total

    def spread(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ_m slope_m y_im of every row."""
        of_row: NDArray[np.float64] = (self._Y @ slopes)[self._host]
        return of_row

    @cached_property
    def _host(self) -> NDArray[np.int64]:
        return self.codes.cpu().numpy().astype(np.int64)


@cache
def _labels_of_patterns(objectives: int) -> NDArray[np.float64]:
    codes = np.arange(1 << objectives)
    return (codes[:, None] >> np.arange(objectives) & 1).astype(np.float64)
