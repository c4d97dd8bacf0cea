"""The paper's loss, one soft rank for all objectives: its value, and its slope for the kernels."""

__all__ = ["RankAucParts", "RankAucSlope", "rank_auc_loss", "rank_auc_slope"]

from dataclasses import dataclass
from typing import Literal, NamedTuple, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from harmonrank.paper.losses._inputs import check_inputs, check_scores, check_weights
from harmonrank.paper.losses._patterns import Patterns
from harmonrank.paper.losses._rank_sums import RankSums
from harmonrank.paper.losses._request_sums import RequestSums
from harmonrank.paper.soft_rank import RequestRanks, SoftRanks, request_order, soft_rank
from harmonrank.support.errors import UsageError


@dataclass(frozen=True)
class RankAucParts:
    """The rank loss and what a training log wants to know about it.

    Attributes:
        loss: The value that `rank_auc_loss` returns, part of the graph.
        soft_auc: Soft AUC of each objective, detached; nan for an absent one.
        absent: Positions of the objectives without a positive or without a negative.
        gradient_share: Share of rows with a non-zero gradient through the soft rank; 0 if every
            objective is absent. A value near 0 says that `strength` is too small to learn from.
    """

    loss: Tensor
    soft_auc: Tensor
    absent: tuple[int, ...]
    gradient_share: float


@overload
def rank_auc_loss(
    scores: Tensor,
    labels: Tensor | Patterns,
    *,
    strength: float = ...,
    regularization: Literal["l2", "kl"] = ...,
    pairs: Literal["each", "published"] = ...,
    objective_weights: Tensor | None = ...,
    sample_weight: Tensor | None = ...,
    requests: ArrayLike | Tensor | None = ...,
    return_parts: Literal[False] = ...,
) -> Tensor: ...


@overload
def rank_auc_loss(
    scores: Tensor,
    labels: Tensor | Patterns,
    *,
    strength: float = ...,
    regularization: Literal["l2", "kl"] = ...,
    pairs: Literal["each", "published"] = ...,
    objective_weights: Tensor | None = ...,
    sample_weight: Tensor | None = ...,
    requests: ArrayLike | Tensor | None = ...,
    return_parts: Literal[True],
) -> RankAucParts: ...


def rank_auc_loss(
    scores: Tensor,
    labels: Tensor | Patterns,
    *,
    strength: float = 1.0,
    regularization: Literal["l2", "kl"] = "l2",
    pairs: Literal["each", "published"] = "each",
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
    requests: ArrayLike | Tensor | None = None,
    return_parts: bool = False,
) -> Tensor | RankAucParts:
    """One soft rank for all objectives: L = Σ_m w_m (1 − softAUC_m), 0 for a perfect order.

    softAUC_m = (⟨r, y_m⟩ − n⁺(n⁺+1)/2) / (n⁺ n⁻), with r the soft rank of the scores: eq. 8 and
    eq. 9 of docs/soft-ranks.md, eq. 5 of docs/network.md. So L is
    linear in r with coefficients −c_i, c_i = Σ_m w_m y_im / (n⁺_m n⁻_m). The factor 1/(n⁺ n⁻)
    stays: without it the sum over objectives has another optimum.

    The paper drops that factor as a constant, which it is for one objective alone. `pairs` of
    "published" gives its loss, Σ_m w_m n⁺_m n⁻_m (1 − softAUC_m), divided by the mean of n⁺n⁻ over
    the objectives that are present: one number per batch, which brings the loss to the same size
    as with "each", so that learning rates can be compared. Common objectives then count more.

    With row weights v, r is the weighted mid-rank W_< + (W_= + 1)/2 made soft and
    softAUC = (Σ v y r − W⁺(W⁺+1)/2) / (W⁺ W⁻): the mid-ranks of the positives among themselves sum
    to W⁺(W⁺+1)/2 whatever their order. A row of weight k therefore equals k copies of it, and a row
    of label p equals a positive of weight p tied with a negative of weight 1−p. Multiplying all
    weights changes nothing under "l2"; under "kl" it counts as more copies and bends a little more.

    An objective without a positive or a negative contributes nothing; `return_parts` names it. If
    all are absent the loss is 0 with zero gradient. A soft rank that is not yet bent is linear in
    the scores, and the soft AUC can then leave [0, 1] a little and the loss fall below 0.

    Args:
        scores: Fused scores, (rows,).
        labels: Labels in [0, 1], (rows, objectives), or (rows,) for one objective; or `Patterns`,
            which say the same in fewer numbers.
        strength: Dimensionless smoothing of the soft rank; towards 0 it becomes the exact rank.
        regularization: "l2" or "kl", as in `harmonrank.paper.soft_rank.soft_rank`.
        pairs: "each" objective's pairs count as one AUC, or every pair the same ("published").
        objective_weights: w, (objectives,); ones by default.
        sample_weight: v, (rows,); ones by default. A row of weight 0 counts as
            removed.
        requests: Request ids, (rows,); ranks and AUC are then those within each request, averaged
            by rows as `harmonrank.metrics.grouped_auc` is (eq. 12 of docs/soft-ranks.md).
        return_parts: Return `RankAucParts` instead of the loss alone.

    >>> scores = torch.tensor([0.1, 0.4, 0.2, 0.9])
    >>> labels = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> round(rank_auc_loss(scores, labels, strength=1e-6).item(), 6)  # AUCs 3/4 and 1
    0.25
    """
    lifted, w, sums = _read(scores, labels, objective_weights, sample_weight, requests)
    present = torch.from_numpy(sums.present).to(lifted.device)
    if sums.present.any():
        ranks, share = soft_rank(
            lifted,
            strength=strength,
            regularization=regularization,
            weights=sums.weights,
            groups=requests,
            return_share=True,
        )
        soft_auc = sums.soft_auc(ranks)
    else:
        # The product keeps the loss in the caller's graph, so backward() works on any batch.
        soft_auc, share = lifted.sum() * torch.zeros_like(w), 0.0
    weights = w * torch.from_numpy(sums.counts(pairs)).to(w)
    loss = weights.sum() - weights @ soft_auc
    if not return_parts:
        return loss
    seen = torch.where(present, soft_auc.detach(), torch.nan)
    absent = tuple(np.flatnonzero(~sums.present).tolist())
    return RankAucParts(loss, seen, absent, float(share))


def _read(
    scores: Tensor,
    labels: Tensor | Patterns,
    objective_weights: Tensor | None,
    sample_weight: Tensor | None,
    requests: ArrayLike | Tensor | None,
) -> tuple[Tensor, Tensor, RankSums | RequestSums]:
    """Check the arguments; return the scores in float64, the objectives' weights, the counts."""
    if not isinstance(labels, Patterns):
        inputs = check_inputs(scores, labels, objective_weights, sample_weight)
        v = None if sample_weight is None else inputs.sample_weight
        return inputs.scores, inputs.objective_weights, _sums(inputs.labels, v, requests)
    lifted, rows = check_scores(scores), len(labels)
    if len(scores) != rows:
        raise UsageError(f"`labels` must have one row per score row, {len(scores)}. Got {rows}.")
    w = check_weights("objective_weights", objective_weights, labels.objectives, lifted)
    v = (
        None
        if sample_weight is None
        else check_weights("sample_weight", sample_weight, rows, lifted)
    )
    return lifted, w, _sums(labels, v, requests)


def _sums(
    labels: Tensor | Patterns, weights: Tensor | None, requests: ArrayLike | Tensor | None
) -> RankSums | RequestSums:
    """Count labels, over all rows or within requests."""
    if requests is None:
        return RankSums(labels, weights)
    ids = requests.cpu().numpy() if isinstance(requests, Tensor) else requests
    return RequestSums(labels, *request_order(ids, len(labels)), weights)


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
    requests: NDArray[np.int64] | None = None,
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
    table = labels.double() if isinstance(labels, Tensor) else labels
    sums: RankSums | RequestSums = RankSums(table, v)
    if requests is not None:
        order, starts = request_order(requests, len(scores))
        sums = RequestSums(table, order, starts, v)
    if not sums.present.any():
        return RankAucSlope(0.0, np.zeros(len(scores), np.float32), 0.0)
    weights = None if sums.weights is None else sums.weights[None]
    kl = regularization == "kl"
    soft: SoftRanks | RequestRanks = SoftRanks(strength, kl, weights=weights)
    if requests is not None:
        soft = RequestRanks(order, starts, strength, kl, weights=weights)
    ranks = soft.solve(scores.astype(np.float64)[None])[0]
    w = sums.counts(pairs) * objective_weights
    loss = float(w.sum() - w @ sums.forward(ranks))
    slope = soft.gradient(sums.backward(-w)[None])[0].astype(np.float32)
    return RankAucSlope(loss, slope, float(soft.pooled[0]) / len(scores))
