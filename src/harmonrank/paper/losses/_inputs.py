"""What every loss checks before it counts: shapes, kinds and ranges of its arrays."""

__all__ = [
    "LossInputs",
    "check_inputs",
    "check_positive",
    "check_scores",
    "check_vector",
    "check_weights",
]

import math
from typing import NamedTuple

import torch
from torch import Tensor

from harmonrank.support.errors import UsageError


class LossInputs(NamedTuple):
    """Checked arguments of a loss, in float64 on the device of the scores.

    Half, bfloat16 and float32 scores are lifted before anything is squared or summed, so the loss
    of 10,240 rows neither overflows nor loses its last digits. The loss stays float64; the gradient
    that reaches the caller's scores has the dtype of these scores.
    """

    scores: Tensor  # (rows,) or (rows, objectives), part of the caller's graph
    labels: Tensor  # (rows, objectives)
    objective_weights: Tensor  # (objectives,)
    sample_weight: Tensor  # (rows,)


def check_inputs(
    scores: Tensor,
    labels: Tensor,
    objective_weights: Tensor | None = None,
    sample_weight: Tensor | None = None,
    *,
    score_per_objective: bool = False,
) -> LossInputs:
    """Check and lift the arguments that all losses share.

    Labels of one objective may be `(rows,)`. Missing weights are ones. With `score_per_objective`
    the scores may also be `(rows, objectives)`.

    >>> check_inputs(torch.zeros(32), torch.zeros(31, 5))
    Traceback (most recent call last):
    harmonrank.support.errors.UsageError: `labels` must have one row per score row, (32, 5). Got
    (31, 5).
    """
    lifted = check_scores(scores, allowed=(1, 2) if score_per_objective else (1,))
    labels = _check_labels(labels, lifted)
    rows, objectives = labels.shape
    if scores.ndim == 2 and scores.shape != labels.shape:
        raise UsageError(
            f"`scores` of two dimensions must have one column per objective, {(rows, objectives)}. "
            f"Got {tuple(scores.shape)}."
        )
    return LossInputs(
        lifted,
        labels,
        check_weights("objective_weights", objective_weights, objectives, lifted),
        check_weights("sample_weight", sample_weight, rows, lifted),
    )


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


def check_scores(scores: Tensor, allowed: tuple[int, ...] = (1,)) -> Tensor:
    """Return finite scores of an allowed number of axes as float64, part of the same graph."""
    _check_tensor("scores", scores)
    if not scores.is_floating_point():
        raise UsageError(
            f"`scores` must be floating point. Got {scores.dtype}; use scores.float()."
        )
    if scores.ndim not in allowed:
        shapes = "(rows,) or (rows, objectives)" if 2 in allowed else "(rows,)"
        raise UsageError(f"`scores` must be {shapes}. Got {tuple(scores.shape)}.")
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
    if len(table) != len(scores):
        expected = (len(scores), *labels.shape[1:])
        raise UsageError(
            f"`labels` must have one row per score row, {expected}. Got {tuple(labels.shape)}."
        )
    if table.numel():
        low, high = (bound.item() for bound in table.aminmax())
        # Written so that nan, which compares false with everything, is refused as well.
        if not (low >= 0 and high <= 1):
            raise UsageError(f"`labels` must lie in [0, 1]. Got values from {low:g} to {high:g}.")
    return table


def check_weights(name: str, weights: Tensor | None, length: int, like: Tensor) -> Tensor:
    """Return weights that are finite and not negative, ones by default, as float64."""
    if weights is None:
        return torch.ones(length, dtype=torch.float64, device=like.device)
    per = "row" if name == "sample_weight" else "objective"
    lifted = check_vector(name, weights, length, per, like).detach()
    if (lifted < 0).any():
        raise UsageError(
            f"`{name}` must not be negative. Got {lifted.min().item():g}; an unwanted event is an "
            "objective whose labels are 1 - y."
        )
    return lifted
