"""Checks that all losses share, and how a loss passes on a gradient that it has computed."""

import math
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.paper.losses._labels import Labels, Patterns
from harmonrank.paper.soft_rank import once
from harmonrank.support.errors import UsageError

Array = NDArray[np.float64]


class _KnownGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, loss: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(scores, gradient)
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        scores, gradient = ctx.saved_tensors
        # The kept gradient would otherwise pass as a constant.
        gradient = once(gradient, "This loss has no second derivative", scores)
        return upstream[0] * gradient, None, None


def with_gradient(
    scores: Tensor, loss: Tensor | float, gradient: Tensor | NDArray[np.float64]
) -> Tensor:
    """Return `loss`, a number already computed, with d loss / d scores = `gradient`.

    Pair losses know value and gradient after one sweep over the pairs. Keeping the gradient, one
    number per row, replaces the n⁺ × n⁻ intermediates that autograd would store. A second
    derivative is refused, not silently zero.

    >>> scores = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> loss = with_gradient(scores, torch.tensor(7.0), torch.tensor([3.0, 4.0]))
    >>> loss.backward()
    >>> loss.item(), scores.grad
    (7.0, tensor([3., 4.]))
    """
    value, slope = (
        torch.as_tensor(x, dtype=scores.dtype, device=scores.device) for x in (loss, gradient)
    )
    result: Tensor = _KnownGradient.apply(scores, value, slope)  # type: ignore[no-untyped-call]
    return result


class LossInputs(NamedTuple):
    """Checked arguments of a loss, in float64 on the device of the scores.

    Half, bfloat16 and float32 scores are lifted before anything is squared or summed, so the loss
    of 10,240 rows neither overflows nor loses its last digits. The loss stays float64; the gradient
    that reaches the caller's scores has the dtype of these scores.
    """

    scores: Tensor  # (rows,), part of the caller's graph
    labels: Labels | Patterns  # (rows, objectives)
    objective_weights: Tensor  # (objectives,)
    sample_weight: Tensor | None  # (rows,)

    @classmethod
    def of(
        cls,
        scores: Tensor,
        labels: Tensor | Patterns,
        objective_weights: Tensor,
        sample_weight: Tensor | None,
    ) -> Self:
        """Convert arguments that need no check to float64."""
        known = labels if isinstance(labels, Patterns) else Labels(labels.double())
        v = None if sample_weight is None else sample_weight.double()
        return cls(scores.double(), known, objective_weights, v)

    @property
    def table(self) -> Tensor:
        """The labels beside the scores, (rows, objectives)."""
        return self.labels.labels.to(self.scores)

    @property
    def row_weights(self) -> Tensor:
        """The weight of each row, (rows,)."""
        return torch.ones_like(self.scores) if self.sample_weight is None else self.sample_weight

    @property
    def host(self) -> tuple[Array, Array, Array | None]:
        """Scores, objective weights and row weights, if there are any, as arrays."""
        s, w, v = (
            None if x is None else x.detach().cpu().numpy()
            for x in (self.scores, self.objective_weights, self.sample_weight)
        )
        assert s is not None
        assert w is not None
        return s, w, v


def check_inputs(
    scores: Tensor,
    labels: Tensor | Patterns,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
) -> LossInputs:
    """Check the arguments that all losses share, and convert them to float64.

    Labels of one objective may be `(rows,)`. Missing objective weights are ones.

    >>> check_inputs(torch.zeros(32), torch.zeros(31, 5))
    Traceback (most recent call last):
    harmonrank.support.errors.UsageError: `labels` must have one row per score row, (32, 5). Got
    (31, 5).
    """
    lifted = _check_scores(scores)
    known = labels if isinstance(labels, Patterns) else Labels(_check_labels(labels, lifted))
    rows, objectives = known.shape
    if rows != len(scores):
        expected = (len(scores), *labels.shape[1:])
        raise UsageError(
            f"`labels` must have one row per score row, {expected}. Got {tuple(labels.shape)}."
        )
    weights = [
        None if given is None else _check_weights(name, given, length, lifted)
        for name, given, length in (
            ("objective_weights", objective_weights, objectives),
            ("sample_weight", sample_weight, rows),
        )
    ]
    ones = lifted.new_ones(objectives)
    return LossInputs(lifted, known, ones if weights[0] is None else weights[0], weights[1])


def check_vector(name: str, values: Tensor, length: int, per: str, like: Tensor) -> Tensor:
    """Return finite values as a float64 vector beside the scores, still part of their graph."""
    _check_tensor(name, values)
    if values.shape != (length,):
        raise UsageError(
            f"`{name}` must have one value per {per}, ({length},). Got {tuple(values.shape)}."
        )
    lifted = values.to(like.device, torch.float64)
    if not torch.isfinite(lifted).all():
        raise UsageError(f"`{name}` must be finite. Got nan or infinity.")
    return lifted


def check_positive(name: str, value: float) -> float:
    """Return a number that must be finite and above zero."""
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"`{name}` must be a finite number above 0. Got {value}.")
    return float(value)


def _check_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise UsageError(
            f"`{name}` must be a torch tensor. Got {type(value).__name__}; use torch.as_tensor."
        )
    if value.is_complex():
        raise UsageError(f"`{name}` must be real. Got {value.dtype}.")


def _check_scores(scores: Tensor) -> Tensor:
    """Return finite scores as float64, part of the same graph."""
    _check_tensor("scores", scores)
    if not scores.is_floating_point():
        raise UsageError(
            f"`scores` must be floating point. Got {scores.dtype}; use scores.float()."
        )
    if scores.ndim != 1:
        raise UsageError(f"`scores` must be (rows,). Got {tuple(scores.shape)}.")
    # A sum is one pass; only a suspicious one is worth the second.
    lifted = scores.double()
    if not math.isfinite(lifted.detach().sum()) and not torch.isfinite(scores).all():
        raise UsageError(
            "`scores` must be finite. Got nan or infinity: lower the learning rate or check the "
            "features."
        )
    return lifted


def _check_labels(labels: Tensor, scores: Tensor) -> Tensor:
    _check_tensor("labels", labels)
    if labels.ndim not in (1, 2):
        raise UsageError(f"`labels` must be (rows, objectives). Got {tuple(labels.shape)}.")
    table = labels.detach().to(scores.device, torch.float64)
    table = table[:, None] if labels.ndim == 1 else table
    if table.numel():
        low, high = (bound.item() for bound in table.aminmax())
        # Written so that nan, which compares false with everything, is refused as well.
        if not (low >= 0 and high <= 1):
            raise UsageError(f"`labels` must lie in [0, 1]. Got values from {low:g} to {high:g}.")
    return table


def _check_weights(name: str, weights: Tensor, length: int, like: Tensor) -> Tensor:
    """Return weights that are finite and not negative."""
    per = "row" if name == "sample_weight" else "objective"
    lifted = check_vector(name, weights, length, per, like).detach()
    if (lifted < 0).any():
        raise UsageError(
            f"`{name}` must not be negative. Got {lifted.min().item():g}; an unwanted event is an "
            "objective whose labels are 1 - y."
        )
    return lifted
