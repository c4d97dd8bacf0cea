"""The paper's loss: one soft rank for all objectives."""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from harmonrank.paper.losses._inputs import LossInputs, check_inputs, with_gradient
from harmonrank.paper.losses._labels import Labels, Patterns
from harmonrank.paper.soft_rank import options_of, request_order
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
        """Return the weight of each objective's 1 − AUC, (objectives,); 0 for an absent one.

        1 with "each". With "published" it is proportional to the pairs, W⁺W⁻, and 1 on average.
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
        """Return the weight of each objective's 1 − AUC, (objectives,); 0 for an absent one."""
        if pairs != "each":
            raise UsageError(f"`pairs` must be 'each' where `requests` are given. Got '{pairs}'.")
        return self.present.astype(np.float64)

    def forward(self, ranks: Array) -> Array:
        """Return the soft AUCs of ranks, (objectives,)."""
        areas: Array = 0.5 + (ranks - self._middle) @ self._share
        return areas

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


@dataclass(frozen=True)
class RankAucParts:
    """The rank loss, and figures for a training log.

    Attributes:
        loss: The value that `rank_auc_loss` returns, part of the graph.
        soft_auc: Soft AUC of each objective, detached; nan for an absent one.
        absent: Positions of the objectives without a positive or without a negative.
        gradient_share: Share of rows with a non-zero gradient through the soft rank; 0 if every
            objective is absent. A value near 0 says that `strength` is too small to learn from.
        slope: ∂L/∂s, (rows,), which is computed with the loss.
    """

    loss: Tensor
    soft_auc: Tensor
    absent: tuple[int, ...]
    gradient_share: float
    slope: NDArray[np.float64]


class _Options(TypedDict, total=False):
    strength: float
    regularization: Literal["l2", "kl"]
    pairs: Literal["each", "published"]
    objective_weights: Tensor | None
    sample_weight: Tensor | None
    requests: ArrayLike | Tensor | None


Labelled = Tensor | Patterns


@overload
def rank_auc_loss(
    scores: Tensor,
    labels: Labelled,
    *,
    return_parts: Literal[False] = ...,
    **options: Unpack[_Options],
) -> Tensor: ...
@overload
def rank_auc_loss(
    scores: Tensor, labels: Labelled, *, return_parts: Literal[True], **options: Unpack[_Options]
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
    weights changes nothing under "l2"; under "kl" it acts as more copies and smooths a little more.

    An objective without a positive or a negative contributes nothing; `return_parts` names it. If
    all are absent the loss is 0 with zero gradient. Where a soft rank is linear in the scores, the
    soft AUC can leave [0, 1] a little, and the loss can fall below 0.

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
    inputs = check_inputs(scores, labels, objective_weights, sample_weight)
    parts = rank_auc_parts(
        inputs, strength=strength, regularization=regularization, pairs=pairs, requests=requests
    )
    return parts if return_parts else parts.loss


def rank_auc_parts(
    inputs: LossInputs,
    *,
    strength: float = 1.0,
    regularization: Literal["l2", "kl"] = "l2",
    pairs: Literal["each", "published"] = "each",
    requests: ArrayLike | Tensor | None = None,
) -> RankAucParts:
    """Return `rank_auc_loss` of checked arguments, with figures for a training log."""
    s, w, v = inputs.host
    soft = replace(options_of(strength, regularization), weights=v)
    if requests is None:
        sums: RankSums | RequestSums = RankSums(inputs.labels, v)
    else:
        ids = requests.cpu().numpy() if isinstance(requests, Tensor) else requests
        order, starts = request_order(ids, len(s))
        soft = replace(soft, order=order, starts=starts)
        sums = RequestSums(inputs.labels, order, starts, v)
    w = w * sums.counts(pairs)
    soft_auc, slope, share = np.zeros(len(w)), np.zeros(len(s)), 0.0
    if sums.present.any():
        soft_auc = sums.forward(soft.solve(s))
        slope = soft.gradient(sums.backward(-w))
        share = float(soft.pooled.sum()) / len(s)
    loss = with_gradient(inputs.scores, float(w.sum() - w @ soft_auc), slope)
    seen = torch.from_numpy(np.where(sums.present, soft_auc, np.nan)).to(loss.device)
    absent = tuple(np.flatnonzero(~sums.present).tolist())
    return RankAucParts(loss, seen, absent, share, slope)
