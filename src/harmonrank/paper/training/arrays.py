"""Arrays: the rows a network trains on."""

__all__ = ["Arrays"]

from functools import cached_property

import torch
from torch import Tensor

from harmonrank.paper.losses import MOST_OBJECTIVES, Patterns


class Arrays:
    """Scores, context codes, labels and perhaps weights of the same rows.

    A batch is a view: it gathers a tensor when that is first asked for, so a loss that looks at
    labels alone does not pay for the rest. Whole-number labels are kept as patterns, one number per
    row.

    Args:
        scores: (rows, objectives), float32.
        context: (rows, features), codes.
        labels: (rows, objectives), of any type; they come out as float32.
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
