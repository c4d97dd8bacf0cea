"""Rank sums: from the soft ranks of a batch to the soft AUC of each objective, and back."""

__all__ = ["RankSums", "RequestSums"]

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.losses._labels import Labels, Patterns
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel

Array = NDArray[np.float64]


class RankSums:
    """The labels of a batch, counted, ready to turn ranks into AUCs.

    softAUC = ½ + Σ v y (r − (W+1)/2) / (W⁺W⁻): the rank sum, with ranks centred against
    cancellation; ½ for an absent objective.

    Args:
        labels: Of the rows.
        weights: v, (rows,); None for ones.

    Attributes:
        present: Which objectives have both a positive and a negative, (objectives,).

    >>> import torch
    >>> sums = RankSums(Labels(torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.float64)))
    >>> sums.forward(np.array([1.0, 3.0, 2.0])).tolist()
    [0.5]
    """

    def __init__(self, labels: Labels | Patterns, weights: Array | None = None) -> None:
        self._labels, self._v = labels, weights
        self._W = float(labels.shape[0] if weights is None else weights.sum())
        positive, negative = labels.mass(weights)
        self.present = (positive > 0) & (negative > 0)
        # An absent objective has no pairs; dividing by infinity avoids its 0/0.
        self._pairs = np.where(self.present, positive * negative, np.inf)

    def counts(self, pairs: Literal["each", "published"]) -> Array:
        """Return what each objective's 1 − AUC counts, (objectives,); 0 for an absent one.

        1 with "each". With "published" in proportion to its pairs, W⁺W⁻, and 1 on average.
        """
        if pairs not in ("each", "published"):
            raise UsageError(f"`pairs` must be 'each' or 'published'. Got '{pairs}'.")
        if pairs == "each" or not self.present.any():
            return self.present.astype(np.float64)
        own = np.where(self.present, self._pairs, 0.0)
        counted: Array = own / own[self.present].mean()
        return counted

    def forward(self, ranks: Array) -> Array:
        """Return the soft AUCs of ranks, (objectives,)."""
        centred = ranks - (self._W + 1) / 2
        if self._v is not None:
            centred *= self._v
        return 0.5 + self._labels.sums(centred) / self._pairs

    def backward(self, slopes: Array) -> Array:
        """Return v Σ_m y_m slope_m / (W⁺W⁻)_m of every row; eq. 10 of docs/soft-ranks.md."""
        of_row = self._labels.spread(slopes / self._pairs)
        return of_row if self._v is None else of_row * self._v


class RequestSums:
    """`RankSums` of each request, averaged by rows: eq. 12 of docs/soft-ranks.md.

    soft AUC_m = Σ_g a_g softAUC_gm / Σ_g a_g over the requests in which objective m has a positive
    and a negative, a_g their weight. It is linear in the ranks, and so is its gradient.

    Args:
        labels: Of the rows.
        order, starts: Of `harmonrank.paper.soft_rank.request_order`.
        weights: v, (rows,); None for ones.

    Attributes:
        present: Which objectives have a request with a positive and a negative, (objectives,).
    """

    def __init__(
        self,
        labels: Labels | Patterns,
        order: NDArray[np.int64],
        starts: NDArray[np.int64],
        weights: Array | None = None,
    ) -> None:
        (rows, objectives), table = labels.shape, labels.labels.double().cpu().contiguous()
        v = np.ones(rows) if weights is None else weights
        # What a rank adds to the AUC of each objective, and the middle rank of its request.
        self._share, self._middle = np.zeros((rows, objectives)), np.zeros(rows)
        say = np.zeros(objectives)
        _add_requests(table.numpy(), v, order, starts, self._share, self._middle, say)
        self.present = say > 0
        self._share /= np.where(self.present, say, 1.0)

    def counts(self, pairs: Literal["each", "published"]) -> Array:
        """Return what each objective's 1 − AUC counts, (objectives,); 0 for an absent one."""
        if pairs != "each":
            raise UsageError(f"`pairs` must be 'each' where `requests` are given. Got '{pairs}'.")
        return self.present.astype(np.float64)

    def forward(self, ranks: Array) -> Array:
        """Return the soft AUCs of ranks, (objectives,)."""
        found: Array = 0.5 + (ranks - self._middle) @ self._share
        return found

    def backward(self, slopes: Array) -> Array:
        """Return ∂/∂ranks, (rows,), given ∂/∂AUC of each objective."""
        of_row: Array = self._share @ slopes
        return of_row


@kernel
def _add_requests(
    y: Any, v: Any, order: Any, starts: Any, share: Any, middle: Any, say: Any
) -> None:
    """Write a_g v y/(W⁺W⁻)_g of each row and objective, and add up a_g = W_g."""
    for g in range(starts.size - 1):
        rows = order[starts[g] : starts[g + 1]]
        whole = 0.0
        for row in rows:
            whole += v[row]
        for row in rows:
            middle[row] = (whole + 1.0) / 2.0
        for m in range(y.shape[1]):
            positive = negative = 0.0
            for row in rows:
                positive += v[row] * y[row, m]
                negative += v[row] * (1.0 - y[row, m])
            if positive > 0.0 and negative > 0.0:
                say[m] += whole
                for row in rows:
                    share[row, m] = whole * v[row] * y[row, m] / (positive * negative)
