"""Weighting: which weights the objectives' losses have while a network learns."""

__all__ = ["Fixed", "MinNorm", "Pantheon", "weighting_of"]

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from harmonrank.fusion.fitting.fit import Fit
from harmonrank.fusion.quality.outcomes import outcomes_of
from harmonrank.metrics import auc
from harmonrank.support.errors import UsageError

LossOf = Callable[[Tensor, Tensor], Tensor]
"""The loss of fused scores and objective weights."""


class Fixed:
    """The weights that the user gave, all the time.

    Attributes:
        memory: Tensors that a checkpoint must hold, changed in place.
    """

    def __init__(self, fit: Fit) -> None:
        self.memory: dict[str, Tensor] = {"weights": torch.from_numpy(fit.weights.copy())}

    def weights(self, fused: Tensor, loss: LossOf) -> Tensor:  # noqa: ARG002
        """Return the weights of a step."""
        return self.memory["weights"]

    def epoch_ended(self, auc: np.ndarray) -> None:
        """Learn the validation AUC of each objective."""


class Pantheon(Fixed):
    """After every epoch, raises the weight of the objective farthest behind (`raise_the_last`).

    Behind what the formula s = Σ_m w_m p̂_m/(π_m(1−π_m)), which takes upstream at its word, has
    on the validation rows.
    """

    def __init__(self, fit: Fit) -> None:
        super().__init__(fit)
        pi = fit.train.prevalence()
        formula = fit.valid.scores @ (fit.signs * fit.weights / (pi * (1 - pi)))
        labels, weight = outcomes_of(fit.valid), fit.valid.sample_weight
        self.reference = auc(formula, labels, sample_weight=weight)

    def epoch_ended(self, auc: np.ndarray) -> None:
        """Raise a weight, if an objective is behind."""
        from harmonrank.paper.training.weightings import raise_the_last

        weights = self.memory["weights"]
        raised = raise_the_last(weights.cpu().numpy(), auc, self.reference)
        weights.copy_(torch.from_numpy(raised))


class MinNorm(Fixed):
    """In every step, PE-LTR's weights: the smallest combination of the objectives' gradients.

    Gradients are taken by the fused scores, which all objectives share, not by every weight of
    the network: one pass through the network then serves all objectives, and the norm of what
    reaches the weights is bounded by the norm here (Sener & Koltun, NeurIPS 2018). An objective's
    loss enters times the weight that the user gave it.
    """

    def weights(self, fused: Tensor, loss: LossOf) -> Tensor:
        """Return the weights of a step; M times the smallest combination, which sums to 1."""
        from harmonrank.paper.training.weightings import min_norm_weights

        given = self.memory["weights"]
        scores = fused.detach().requires_grad_()
        gradients = []
        for one in torch.diag(given):
            value = loss(scores, one)
            known = value.requires_grad
            slope = torch.autograd.grad(value, scores)[0] if known else torch.zeros_like(scores)
            gradients.append(slope.double().cpu().numpy())
        shares = min_norm_weights(np.stack(gradients))
        return given * torch.from_numpy(shares * len(shares)).to(given)


def weighting_of(name: str, fit: Fit) -> Fixed:
    """Return the weighting that an option names."""
    kinds = {"fixed": Fixed, "pantheon": Pantheon, "min-norm": MinNorm}
    if name not in kinds:
        raise UsageError(f"`weighting` must be one of {', '.join(kinds)}. Got '{name}'.")
    return kinds[name](fit)
