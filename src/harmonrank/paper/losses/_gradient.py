"""A loss whose gradient is computed together with its value."""

__all__ = ["with_gradient"]

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from harmonrank.support.errors import UsageError


class _KnownGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, loss: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(scores, gradient)
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        scores, gradient = ctx.saved_tensors
        # Only `create_graph=True` leaves gradients enabled here, and the kept gradient would then
        # pass as a constant.
        if torch.is_grad_enabled():
            gradient = _Once.apply(gradient, scores)  # type: ignore[no-untyped-call]
        return upstream[0] * gradient, None, None


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, gradient: Tensor, _scores: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def backward(_ctx: Any, *_upstream: Tensor) -> Tensor:
        raise UsageError(
            "This loss has no second derivative. Detach its gradient before building on it."
        )


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
