"""Rank sums: from the soft ranks of a batch to the soft AUC of each objective, and back."""

__all__ = ["RankSums", "SoftAuc", "labels_of"]

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.paper.losses._patterns import Patterns
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel

Array = NDArray[np.float64]


class RankSums:
    """The labels of a batch, counted, ready to turn ranks into AUCs.

    Few rows and very few objectives: calls cost more than arithmetic, so some loops on the host
    do what would take a dozen small tensor operations.

    Args:
        labels: (rows, objectives), float64 in [0, 1], or their patterns.
        weights: v, (rows,), float64; None for ones.

    Attributes:
        weights: v on the host, or None.
        present: Which objectives have both a positive and a negative, (objectives,).

    >>> sums = RankSums(torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.float64))
    >>> sums.soft_auc(torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64)).tolist()
    [0.5]
    """

    def __init__(self, labels: Tensor | Patterns, weights: Tensor | None = None) -> None:
        self._labels = labels_of(labels)
        self.weights: Array | None = None if weights is None else weights.cpu().numpy()
        self._W = float(len(labels) if self.weights is None else self.weights.sum())
        positive, negative = self._labels.mass(self.weights)
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

    def soft_auc(self, ranks: Tensor) -> Tensor:
        """½ + Σ v y (r − (W+1)/2) / (W⁺W⁻) of each objective, differentiable in the ranks.

        The rank sum, with ranks centred against cancellation; ½ for an absent objective.
        """
        result: Tensor = SoftAuc.apply(ranks, self)  # type: ignore[no-untyped-call]
        return result

    def forward(self, ranks: Array) -> Array:
        """Return the soft AUCs of ranks, (objectives,)."""
        centred = ranks - (self._W + 1) / 2
        if self.weights is not None:
            centred *= self.weights
        return 0.5 + self._labels.sums(centred) / self._pairs

    def backward(self, slopes: Array) -> Array:
        """Return v Σ_m y_m slope_m / (W⁺W⁻)_m of every row."""
        of_row = self._labels.spread(slopes / self._pairs)
        return of_row if self.weights is None else of_row * self.weights


class SoftAuc(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Tensor, sums: Any) -> Tensor:
        ctx.sums = sums
        return torch.from_numpy(sums.forward(ranks.detach().cpu().numpy())).to(ranks.device)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        slopes = upstream[0].detach()
        gradient = torch.from_numpy(ctx.sums.backward(slopes.cpu().numpy()))
        return gradient.to(slopes.device), None


def labels_of(labels: Tensor | Patterns) -> "Patterns | _Labels":
    """Return labels with the verbs of `Patterns`."""
    return labels if isinstance(labels, Patterns) else _Labels(labels)


class _Labels:
    """Labels as they are, with the verbs of `Patterns`."""

    def __init__(self, labels: Tensor) -> None:
        self._y: Array = labels.double().cpu().contiguous().numpy()

    def mass(self, v: Array | None) -> tuple[Array, Array]:
        positive, negative = np.zeros((2, self._y.shape[1]))
        _add_masses(self._y, np.ones(len(self._y)) if v is None else v, positive, negative)
        return positive, negative

    def sums(self, x: Array) -> Array:
        total: Array = x @ self._y
        return total

    def spread(self, slopes: Array) -> Array:
        of_row: Array = self._y @ slopes
        return of_row


@kernel
def _add_masses(labels: Any, v: Any, positive: Any, negative: Any) -> None:
    """Add v y and v (1−y), each on its own: total − W⁺ would leave a residue in an empty class."""
    for i in range(len(labels)):
        for m in range(labels.shape[1]):
            positive[m] += v[i] * labels[i, m]
            negative[m] += v[i] * (1.0 - labels[i, m])
