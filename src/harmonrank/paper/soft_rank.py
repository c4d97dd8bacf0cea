"""Soft ranks: ranks with a gradient, of all scores or within each request."""

__all__ = ["SoftRanks", "once", "options_of", "request_order", "soft_rank"]

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from harmonrank.metrics._sort import sort_into
from harmonrank.paper.projection import project, pull_back, scale
from harmonrank.support.errors import UsageError, did_you_mean
from harmonrank.support.kernel import kernel

Array = NDArray[Any]

Regularization = Literal["l2", "kl"]
Scale = Literal["std", "none"]
_KERNEL_DTYPES = (torch.float32, torch.float64)


def request_order(groups: ArrayLike, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows in the order of their requests, and where each request begins, and the end.

    >>> request_order([7, 3, 7], 3)
    (array([1, 0, 2]), array([0, 1, 3]))
    """
    ids = np.asarray(groups)
    if ids.shape != (rows,):
        raise UsageError(f"`groups` must have one id per score, ({rows},). Got {ids.shape}.")
    codes = np.unique(ids, return_inverse=True)[1].reshape(-1)
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=0))])
    return np.argsort(codes, kind="stable"), starts.astype(np.int64)


@dataclass
class SoftRanks:
    """`soft_rank` of the parts of a vector: `solve`, then `gradient` of the same scores.

    Each part has its own mean, standard deviation and number of items (eq. 11 of
    docs/soft-ranks.md). By default all scores are one part.

    Attributes:
        strength: How smooth the ranks are; larger values move them towards the scores.
        kl: Entropic instead of quadratic regularisation.
        standardise: Whether z is free of the unit of the scores.
        weights: (n,) or None.
        starts: Where each part begins, and the end.
        order: The scores in the order of their parts; None if they are in that order.
        pooled: After `solve`, how many items of each part have a gradient.

    >>> ranks = SoftRanks(strength=4.0).solve(np.array([0.1, 0.9, 0.2, 0.4]))
    >>> ranks.round(4)
    array([1.5674, 4.    , 1.8919, 2.5407])
    >>> SoftRanks(0.1, starts=np.array([0, 2, 4])).solve(np.array([0.1, 0.9, 0.4, 0.2]))
    array([1., 2., 2., 1.])
    """

    strength: float = 1.0
    kl: bool = False
    standardise: bool = True
    weights: NDArray[np.float64] | None = None
    starts: NDArray[np.int64] | None = None
    order: NDArray[np.int64] | None = None

    def solve(self, scores: Array) -> Array:
        """Return the soft rank of each score, (n,), within its part."""
        n = len(scores)
        self._ends = np.array([0, n]) if self.starts is None else self.starts
        parts = len(self._ends) - 1
        self._scores = np.ascontiguousarray(self._sorted(scores))
        self._weights = None if self.weights is None else self._sorted(self.weights)
        # The gradient of kl multiplies by the ranks, so they keep all their digits.
        self._ranks = np.empty(n, np.float64 if self.kl else scores.dtype)
        self._block, self._norm = np.empty(n, np.uint32), np.empty(n // 2 + parts + 1)
        self._scales, self._counts = np.empty((parts, 3)), np.empty((parts, 2), np.int64)
        options = self.strength, self.kl, self.standardise
        finite = _solve(
            self._scores, self._weights, self._ends, options, self._ranks, self._block, self._norm,
            self._scales, self._counts,
        )  # fmt: skip
        if not finite:
            raise _not_finite(scores, self._ends if self.order is None else self._ends[[0, -1]])
        self.pooled = self._counts[:, 0]
        return self._unsorted(self._ranks)

    def gradient(self, upstream: Array) -> Array:
        """Return ∂L/∂scores, given ∂L/∂ranks of the scores that were solved last, (n,)."""
        out = np.empty_like(self._scores)
        _pull_back(
            np.ascontiguousarray(self._sorted(upstream)), self._scores, self._weights, self._ends,
            self.kl, self._ranks, self._block, self._norm, self._scales, self._counts, out,
        )  # fmt: skip
        return self._unsorted(out)

    def _sorted(self, values: Array) -> Array:
        return values if self.order is None else values[self.order]

    def _unsorted(self, values: Array) -> Array:
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out


@kernel
def _solve(
    scores: Array, weights: Any, starts: Array, options: Any, ranks: Array, block: Array,
    norm: Array, scales: Array, counts: Array,
) -> bool:  # fmt: skip
    """Solve one part after the other; return whether all scores are finite."""
    strength, kl, standardise = options
    ascending, order = np.empty_like(scores), np.empty(scores.size, np.int32)
    ends = np.empty((2, 1))
    for g in range(starts.size - 1):
        a, b = starts[g], starts[g + 1]
        own = None if weights is None else weights[a:b]
        finite, (ends[0, 0], ends[1, 0]), line = scale(scores[a:b], own, strength, kl, standardise)
        if not finite:
            return False
        part, to, rows = scores[a:b], ascending[a:b], order[a:b]
        sort_into(part.reshape(1, -1), ends[0], ends[1], to.reshape(1, -1), rows.reshape(1, -1))
        scales[g] = line
        filled = ranks[a:b], block[a:b], norm[a // 2 + g :]
        counts[g] = project(to, rows, own, line[:2], kl, filled)
    return True


@kernel
def _pull_back(
    upstream: Array, scores: Array, weights: Any, starts: Array, kl: bool, ranks: Array,
    block: Array, norm: Array, scales: Array, counts: Array, out: Array,
) -> None:  # fmt: skip
    for g in range(starts.size - 1):
        a, b, first = starts[g], starts[g + 1], starts[g] // 2 + g
        own = None if weights is None else weights[a:b]
        line = scales[g, 0], scales[g, 1], scales[g, 2]
        filled = ranks[a:b], block[a:b], norm[first : first + counts[g, 1]]
        pull_back(upstream[a:b], scores[a:b], own, line, kl, filled, out[a:b])


def _not_finite(scores: Array, ends: Array) -> UsageError:
    bad = np.flatnonzero(~np.isfinite(scores))
    row = int(np.searchsorted(ends, bad[0], side="right")) - 1
    position = bad[0] - ends[row]
    where = f"{position}" if len(ends) == 2 else f"{position} of row {row}"
    return UsageError(
        f"`scores` must be finite. Got {len(bad)} NaN or infinite, the first at position {where}: "
        "lower the learning rate, or drop these rows."
    )


class _Options(TypedDict, total=False):
    strength: float
    regularization: Regularization
    scale: Scale
    weights: ArrayLike | Tensor | None
    groups: ArrayLike | Tensor | None


@overload
def soft_rank(
    scores: Tensor, *, return_share: Literal[False] = ..., **options: Unpack[_Options]
) -> Tensor: ...
@overload
def soft_rank(
    scores: Tensor, *, return_share: Literal[True], **options: Unpack[_Options]
) -> tuple[Tensor, float | Tensor]: ...
def soft_rank(
    scores: Tensor,
    *,
    strength: float = 1.0,
    regularization: Regularization = "l2",
    scale: Scale = "std",
    weights: ArrayLike | Tensor | None = None,
    groups: ArrayLike | Tensor | None = None,
    return_share: bool = False,
) -> Tensor | tuple[Tensor, float | Tensor]:
    """Return differentiable ascending ranks along the last axis.

    The projection of z onto the permutahedron of (1, …, n) (Blondel et al., 2020):

        l2:  argmin_r ½‖r − z‖²          kl:  argmin_r Σ r log r − r z − r

    With `scale="std"` z is free of the unit of the scores: z = (s − mean)/std · n/strength for l2,
    (s − mean)/std / strength for kl (the log of a target rank has slope 1/rank, so no n): eq. 3 and
    eq. 4 of docs/soft-ranks.md. Small strengths give the exact rank; from 8 or so an l2 rank of
    bell-shaped scores is linear in them. With `scale="none"` z = s/strength. Arithmetic is float64,
    the result has the scores' dtype.

    Equal scores all rank (n + 1)/2, with zero gradient. The gradient includes the term through mean
    and std; a second derivative is refused.

    Args:
        scores: Finite floats; a device other than the CPU goes through a host copy.
        strength: Positive; how smooth the ranks are.
        regularization: "l2" or "kl".
        scale: "std" or "none".
        weights: Broadcastable to the scores, not negative; an item of weight k acts like k tied
            copies, and one of weight 0 is ranked without an effect on others. They get no gradient.
        groups: Request ids, for scores of one axis; each request is then ranked by itself, with its
            own n, mean and std, as in a loop over requests: eq. 11 of docs/soft-ranks.md.
        return_share: Also return the share of items with a gradient, which are those that share a
            block: a float, or one number per leading position.

    >>> soft_rank(torch.tensor([0.1, 0.9, 0.2, 0.4]), strength=4.0)
    tensor([1.5674, 4.0000, 1.8919, 2.5407])
    """
    _check(scores)
    problem, n = options_of(strength, regularization, scale), scores.shape[-1]
    if weights is not None:
        problem = replace(problem, weights=_weight_rows(weights, scores.shape).reshape(-1))
    if groups is None:
        rows = math.prod(scores.shape[:-1])
        problem = replace(problem, starts=np.arange(rows + 1) * n)
    else:
        problem = _within(problem, scores, groups)
    ranks: Tensor = _SoftRank.apply(scores, problem)  # type: ignore[no-untyped-call]
    if not return_share:
        return ranks
    if scores.ndim == 1:
        return ranks, float(problem.pooled.sum()) / max(n, 1)
    share = torch.from_numpy(problem.pooled / max(n, 1)).to(scores.device)
    return ranks, share.reshape(scores.shape[:-1])


def options_of(strength: float, regularization: str, scale: str = "std") -> SoftRanks:
    """Return a problem with these options, which are checked."""
    if not 0 < strength < math.inf:
        raise UsageError(f"`strength` must be positive and finite. Got {strength}.")
    for name, word, known in (
        ("regularization", regularization, ("l2", "kl")),
        ("scale", scale, ("std", "none")),
    ):
        if word not in known:
            raise UsageError(f"Unknown {name} {word!r}. {did_you_mean(str(word), known)}")
    return SoftRanks(float(strength), regularization == "kl", scale == "std")


def _within(problem: SoftRanks, scores: Tensor, groups: ArrayLike | Tensor) -> SoftRanks:
    """Return the same problem request by request."""
    if scores.ndim != 1:
        raise UsageError(
            f"`groups` are of scores of one axis. Got {scores.ndim} axes: rank each row by itself."
        )
    ids = groups.cpu().numpy() if isinstance(groups, Tensor) else groups
    order, starts = request_order(ids, len(scores))
    return replace(problem, order=order, starts=starts)


class _SoftRank(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, problem: SoftRanks) -> Tensor:
        ctx.save_for_backward(scores)
        ctx.problem = problem
        return _like(problem.solve(_as_array(scores)), scores)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        # Unpacking makes torch refuse scores that were changed in place since.
        (scores,) = ctx.saved_tensors
        gradient = _like(ctx.problem.gradient(_as_array(upstream[0])), scores)
        reason = "soft_rank has no second derivative: its ranks are piecewise smooth in the scores"
        return once(gradient, reason, upstream[0], scores), None


def once(gradient: Tensor, reason: str, *sources: Tensor) -> Tensor:
    """Return a gradient that depends on its sources, and refuses to be differentiated."""
    # Only `create_graph=True` leaves gradients enabled where a gradient is computed.
    if torch.is_grad_enabled():
        gradient = _Once.apply(gradient, reason, *sources)  # type: ignore[no-untyped-call]
    return gradient


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gradient: Tensor, reason: str, *_sources: Tensor) -> Tensor:
        ctx.reason = reason
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, *_upstream: Tensor) -> Tensor:
        raise UsageError(f"{ctx.reason}. Detach its gradient before building on it.")


def _as_array(tensor: Tensor) -> Array:
    """View a tensor as flat float32 or float64 on the host; half widens without loss."""
    held = tensor.detach()
    if not held.is_cpu or held.dtype not in _KERNEL_DTYPES:
        held = held.to("cpu", torch.promote_types(held.dtype, torch.float32))
    array: Array = held.contiguous().numpy()
    return array.reshape(-1)


def _like(array: Array, tensor: Tensor) -> Tensor:
    result = torch.from_numpy(array.reshape(tensor.shape))
    if result.dtype == tensor.dtype and tensor.is_cpu:
        return result
    return result.to(tensor.device, tensor.dtype)


def _weight_rows(weights: ArrayLike | Tensor, shape: torch.Size) -> NDArray[np.float64]:
    if isinstance(weights, Tensor):
        if weights.requires_grad:
            raise UsageError("`weights` get no gradient. Pass `weights.detach()`.")
        weights = weights.to("cpu", torch.float64).numpy()
    values = np.asarray(weights, np.float64)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise UsageError(f"`weights` must be finite and not negative. Got {values.min()}.")
    try:
        return np.ascontiguousarray(np.broadcast_to(values, shape))
    except ValueError:
        raise UsageError(
            f"`weights` must broadcast to the scores, {tuple(shape)}. Got {values.shape}."
        ) from None


def _check(scores: Tensor) -> None:
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        kind = scores.dtype if isinstance(scores, Tensor) else type(scores).__name__
        raise UsageError(f"`scores` must be a floating-point tensor. Got {kind}: call `.float()`.")
    if scores.ndim == 0:
        raise UsageError("`scores` must have at least one axis. Got a single number.")
    if scores.dtype == torch.float16 and scores.shape[-1] > 65504:
        raise UsageError(
            "`scores` as float16 hold ranks up to 65504. "
            f"Got {scores.shape[-1]} items: call `.float()`."
        )
