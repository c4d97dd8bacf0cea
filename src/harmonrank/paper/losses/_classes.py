"""The positives and the negatives of every objective: their mass and their moments.

A row of weight v and label y counts as a positive of weight v·y and a negative of weight v·(1−y)
that share one score. For 0/1 labels that is the usual reading. For a fractional label it makes the
row a pair with itself, of score difference zero (half a win in an AUC), and every pair loss here
keeps that pair: then fractional labels, sample weights and repeated rows all mean the same.
"""

__all__ = ["ClassMoments", "class_mass", "class_moments", "host_arrays"]

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from harmonrank.paper.losses._inputs import LossInputs


class ClassMoments(NamedTuple):
    """Mean and variance of the scores of each class, all (objectives,); finite if not present."""

    mean_positive: Tensor
    mean_negative: Tensor
    variance_positive: Tensor
    variance_negative: Tensor
    present: Tensor  # has both a positive and a negative

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


def host_arrays(inputs: LossInputs) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, labels, row weights and what a pair of each objective counts, w/(W⁺W⁻).

    They are arrays for a kernel; tensors of another device are copied. An absent objective's pairs
    count 0.
    """
    mass_positive, mass_negative = class_mass(inputs.labels, inputs.sample_weight)
    pairs = mass_positive * mass_negative
    scale = torch.where(pairs > 0, inputs.objective_weights / pairs, 0.0)
    host = (inputs.scores.detach(), inputs.labels, inputs.sample_weight, scale)
    s, y, v, scale_m = (x.cpu().contiguous().numpy() for x in host)
    return s, y, v, scale_m


def class_moments(scores: Tensor, labels: Tensor, sample_weight: Tensor) -> ClassMoments:
    """Return the moments of the scores of both classes, differentiable in the scores.

    All come from two products of a (3, rows) with a (rows, objectives) matrix. Squares are taken
    around the common mean: around zero, E s² − (E s)² would cancel for scores far from it.
    """
    total = sample_weight.sum()
    centre = ((sample_weight @ scores) / _or_infinity(total)).detach()
    weighted = sample_weight * (scores - centre)
    powers = torch.stack([sample_weight, weighted, weighted * (scores - centre)])  # (3, rows)
    mass_positive, first_positive, second_positive = powers @ labels  # (objectives,) each
    mass_negative, first_negative, second_negative = powers @ (1 - labels)
    mean_positive = first_positive / _or_infinity(mass_positive)
    mean_negative = first_negative / _or_infinity(mass_negative)
    return ClassMoments(
        mean_positive + centre,
        mean_negative + centre,
        second_positive / _or_infinity(mass_positive) - mean_positive.square(),
        second_negative / _or_infinity(mass_negative) - mean_negative.square(),
        (mass_positive > 0) & (mass_negative > 0),
    )


def _or_infinity(mass: Tensor) -> Tensor:
    """Dividing by infinity removes an empty class without a branch and without a nan."""
    return torch.where(mass > 0, mass.detach(), torch.inf)
