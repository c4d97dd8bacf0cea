"""Labels of a batch, and the sums over its rows that losses need.

A row of weight v and label y counts as a positive of weight v·y and a negative of weight v·(1−y)
that share one score. For 0/1 labels that is the usual meaning. A row with a fractional label makes
a pair with itself, of score difference zero (half a win in an AUC), and every pair loss here keeps
that pair: so fractional labels, sample weights and repeated rows are consistent.
"""

from functools import cache, cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel

MOST_OBJECTIVES = 12  # 4,096 patterns: their tables still fit the nearest cache.

Array = NDArray[np.float64]

_ONES = np.ones(1)
_SUMS = 4


class Labels:
    """Labels as a table, (rows, objectives), float64 in [0, 1]."""

    def __init__(self, labels: Tensor) -> None:
        self.labels = labels

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and objectives."""
        rows, objectives = self.labels.shape
        return rows, objectives

    def mass(self, v: Array | None) -> tuple[Array, Array]:
        """Return Σ v y and Σ v (1−y) of each objective; v is ones if None."""
        positive, negative = np.zeros((2, self.shape[1]))
        _add_masses(self._y, np.ones(len(self._y)) if v is None else v, positive, negative)
        return positive, negative

    def sums(self, x: Array) -> Array:
        """Return Σ_i x_i y_im."""
        total: Array = x @ self._y
        return total

    def spread(self, slopes: Array) -> Array:
        """Return Σ_m slope_m y_im of every row."""
        of_row: Array = self._y @ slopes
        return of_row

    @cached_property
    def _y(self) -> Array:
        table: Array = self.labels.cpu().contiguous().numpy()
        return table


class Patterns:
    """Which objectives are positive in each row: bit m of its code is the label of objective m.

    There are few patterns, so whatever depends on labels alone is computed once per pattern and
    looked up by row: Σ_i x_i y_im = Σ_k Y_km Σ_{i: code k} x_i, with Y the labels of pattern k.

    Args:
        codes: (rows,), int16: small, as the rows of a batch are scattered over memory.
        objectives: How many bits of a code are used.

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

    def mass(self, v: Array | None) -> tuple[Array, Array]:
        """Return Σ v y and Σ v (1−y) of each objective; v is ones if None."""
        count = self._by_pattern(_ONES if v is None else v)
        return count @ self._Y, count @ (1 - self._Y)

    def sums(self, x: Array) -> Array:
        """Return Σ_i x_i y_im."""
        total: Array = self._by_pattern(x) @ self._Y
        return total

    def spread(self, slopes: Array) -> Array:
        """Return Σ_m slope_m y_im of every row."""
        return np.asarray((self._Y @ slopes)[self._host])

    def _by_pattern(self, x: Array) -> Array:
        total = np.zeros((_SUMS, len(self._Y)))
        _add_by_pattern(self._host, x, total)
        return np.asarray(total.sum(axis=0))

    @cached_property
    def _host(self) -> NDArray[np.int16]:
        codes: NDArray[np.int16] = self.codes.cpu().contiguous().numpy()
        return codes


@kernel
def _add_masses(labels: Any, v: Any, positive: Any, negative: Any) -> None:
    """Add v y and v (1−y), each on its own: total − W⁺ would leave a residue in an empty class."""
    for i in range(len(labels)):
        for m in range(labels.shape[1]):
            positive[m] += v[i] * labels[i, m]
            negative[m] += v[i] * (1.0 - labels[i, m])


@kernel
def _add_by_pattern(codes: Any, x: Any, total: Any) -> None:
    """Add x to its pattern's total; an x of length 1 counts for every row.

    Most rows have the same pattern, and an addition waits for the one before. So several sums of
    each pattern take turns.
    """
    step = 0 if len(x) == 1 else 1
    for i in range(len(codes)):
        total[i % _SUMS, np.uint16(codes[i])] += x[np.uint64(i * step)]


@cache
def _labels_of_patterns(objectives: int) -> Array:
    codes = np.arange(1 << objectives)
    return (codes[:, None] >> np.arange(objectives) & 1).astype(np.float64)
