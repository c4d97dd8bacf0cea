"""Rank sums within requests: from the soft ranks of a batch to per-request soft AUC, and back."""

__all__ = ["RequestSums"]

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.paper.losses._patterns import Patterns
from harmonrank.paper.losses._rank_sums import SoftAuc
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel

Array = NDArray[np.float64]


class RequestSums:
    """`RankSums` of each request, averaged by rows: eq. 12 of docs/soft-ranks.md.

    soft AUC_m = Σ_g a_g softAUC_gm / Σ_g a_g over the requests in which objective m has a positive
    and a negative, a_g their weight. It is linear in the ranks, and so is its gradient.

    Args:
        labels: (rows, objectives), float64 in [0, 1], or their patterns.
        order, starts: Of `harmonrank.paper.soft_rank.request_order`.
        weights: v, (rows,), float64; None for ones.

    Attributes:
        weights: v on the host, or None.
        present: Which objectives have a request with a positive and a negative, (objectives,).
    """

    def __init__(
        self,
        labels: Tensor | Patterns,
        order: NDArray[np.int64],
        starts: NDArray[np.int64],
        weights: Tensor | None = None,
    ) -> None:
        table = labels.labels if isinstance(labels, Patterns) else labels
        self._y: Array = table.double().cpu().contiguous().numpy()
        self.weights: Array | None = None if weights is None else weights.cpu().numpy()
        rows, objectives = self._y.shape
        v = np.ones(rows) if self.weights is None else self.weights
        # What a rank adds to the AUC of each objective, and the middle rank of its request.
        self._share, self._middle = np.zeros((rows, objectives)), np.zeros(rows)
        say = np.zeros(objectives)
        _add_requests(self._y, v, order, starts, self._share, self._middle, say)
        self.present = say > 0
        self._share /= np.where(self.present, say, 1.0)

    def counts(self, pairs: Literal["each", "published"]) -> Array:
        """Return what each objective's 1 − AUC counts, (objectives,); 0 for an absent one."""
        if pairs != "each":
            raise UsageError(f"`pairs` must be 'each' where `requests` are given. Got '{pairs}'.")
        return self.present.astype(np.float64)

    def soft_auc(self, ranks: Tensor) -> Tensor:
        """Return the per-request soft AUC of each objective; ½ for an absent one."""
        result: Tensor = SoftAuc.apply(ranks, self)  # type: ignore[no-untyped-call]
        return result

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
