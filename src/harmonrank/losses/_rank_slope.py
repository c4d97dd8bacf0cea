"""The rank loss and its slope at once, for a training step that has no graph."""

__all__ = ["RankAucSlope", "rank_auc_slope"]

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.losses._patterns import Patterns
from harmonrank.losses._rank_sums import RankSums
from harmonrank.ranking import SoftRanks


class RankAucSlope(NamedTuple):
    """What `rank_auc_slope` returns."""

    loss: float
    slope: NDArray[np.float32]  # ∂L/∂s, (rows,)
    gradient_share: float


def rank_auc_slope(
    scores: NDArray[np.float32],
    labels: Tensor | Patterns,
    objective_weights: NDArray[np.float64],
    *,
    strength: float = 1.0,
    regularization: Literal["l2", "kl"] = "l2",
    pairs: Literal["each", "published"] = "each",
    sample_weight: Tensor | None = None,
) -> RankAucSlope:
    """`rank_auc_loss` and the gradient that autograd finds of it, by eq. 10 of docs/soft-ranks.md.

    For a batch of thousands of rows the graph costs more than the sort. Arguments mean the same
    there; only the scores are checked here, since the others do not change from step to step.

    >>> import torch
    >>> labels = Patterns.of(torch.tensor([[0], [1], [0], [1]]))
    >>> found = rank_auc_slope(np.float32([1, 2, 3, 4]), labels, np.ones(1), strength=4.0)
    >>> round(found.loss, 6)
    0.276393
    """
    v = None if sample_weight is None else sample_weight.double()
    sums = RankSums(labels.double() if isinstance(labels, Tensor) else labels, v)
    if not sums.present.any():
        return RankAucSlope(0.0, np.zeros(len(scores), np.float32), 0.0)
    weights = None if sums.weights is None else sums.weights[None]
    soft = SoftRanks(strength, regularization == "kl", weights=weights)
    ranks = soft.solve(scores.astype(np.float64)[None])[0]
    w = sums.counts(pairs) * objective_weights
    loss = float(w.sum() - w @ sums.forward(ranks))
    slope = soft.gradient(sums.backward(-w)[None])[0].astype(np.float32)
    return RankAucSlope(loss, slope, float(soft.pooled[0]) / len(scores))
