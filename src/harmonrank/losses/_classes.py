"""The positives and the negatives of every objective: their mass, their shares, their moments.

A row of weight v and label y counts as a positive of weight v·y and a negative of weight v·(1−y)
that share one score. For 0/1 labels that is the usual reading. For a fractional label it makes the
row a pair with itself, of score difference zero (half a win in an AUC), and every pair loss here
keeps that pair: then fractional labels, sample weights and repeated rows all mean the same.
"""

__all__ = ["Classes", "Moments", "class_mass", "class_moments", "class_shares"]

from typing import NamedTuple

import torch
from torch import Tensor


class Classes(NamedTuple):
    """How each objective's positive and negative mass is spread over the rows."""

    positive: Tensor  # (rows, objectives); columns sum to one, or are zero if not present
    negative: Tensor  # (rows, objectives)
    present: Tensor  # (objectives,): has both a positive and a negative


class Moments(NamedTuple):
    """Mean and variance of the scores of each class, all (objectives,); zero if not present."""

    mean_positive: Tensor
    mean_negative: Tensor
    variance_positive: Tensor
    variance_negative: Tensor

    @property
    def mean_gap(self) -> Tensor:
        """Δμ = μ⁺ − μ⁻."""
        return self.mean_positive - self.mean_negative


def class_mass(labels: Tensor, sample_weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return W⁺ = Σ v·y and W⁻ = Σ v·(1−y) of each objective.

    >>> labels = torch.tensor([[1.0], [0.0], [0.0]])
    >>> class_mass(labels, torch.tensor([2.0, 1.0, 1.0]))
    (tensor([2.]), tensor([2.]))
    """
    # W⁻ is summed on its own: total − W⁺ would leave a rounding residue where there is no negative.
    return sample_weight @ labels, sample_weight @ (1 - labels)


def class_shares(labels: Tensor, sample_weight: Tensor) -> Classes:
    """Return v·y / W⁺ and v·(1−y) / W⁻, the weights that turn sums into means over a class."""
    mass_positive, mass_negative = class_mass(labels, sample_weight)
    present = (mass_positive > 0) & (mass_negative > 0)
    # Dividing by infinity removes an objective without a branch and without a nan.
    mass_positive = torch.where(present, mass_positive, torch.inf)
    mass_negative = torch.where(present, mass_negative, torch.inf)
    weight = sample_weight[:, None]
    return Classes(weight * labels / mass_positive, weight * (1 - labels) / mass_negative, present)


def class_moments(scores: Tensor, classes: Classes) -> Moments:
    """Return the moments of the scores of both classes, differentiable in the scores.

    The variance is the mean square around the mean, in two passes: E s² − (E s)² would cancel for
    scores far from zero.
    """
    mean_positive = scores @ classes.positive
    mean_negative = scores @ classes.negative
    column = scores[:, None]
    return Moments(
        mean_positive,
        mean_negative,
        ((column - mean_positive).square() * classes.positive).sum(0),
        ((column - mean_negative).square() * classes.negative).sum(0),
    )
