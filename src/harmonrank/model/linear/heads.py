"""Heads: the probability of each objective from denoised logits, shrunk by evidence.

With ℓ the coordinates of a row's scores (`Coordinate`: their logits, or normal quantiles), head m
is a logistic regression on few numbers that the density of ℓ suggests:

    own        (ℓ_m − base)/σ            the score itself, calibrated
    by context (v_m(c) − v̄_m) r_m/σ      trust it less where its noise is larger
    surprise   v̄_m r_m/σ                 pull it towards what the other scores say
    mean       (μ_m(c) − base)/σ         how much of the context's mean to believe
    others     (ℓ_j − μ_j(c))/σ_j        anything else that another score knows
    context    one number per context value

With r the surprise and v the variance of `Density`, the first three with coefficients β, −β and
−β·(noise share) are exactly Tweedie's denoised logit: eq. 4 of docs/default-method.md.
"""

__all__ = ["Heads", "Precision", "Shared", "Theta", "head_sizes"]

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from harmonrank.model.coordinate import Coordinate
from harmonrank.model.density.density import Density, distinct_contexts
from harmonrank.model.linear.head_columns import (
    BY_CONTEXT,
    GROUPS,
    INTERCEPT,
    MEAN,
    OWN,
    SHARED,
    SURPRISE,
    HeadColumns,
)
from harmonrank.model.terms.residual import Residual, inputs_of, residual_sizes
from harmonrank.support.storage.arrays import Array

Theta: TypeAlias = Annotated[np.ndarray, Array(("M", "columns"), low=-1e9, high=1e9)]
Precision: TypeAlias = Annotated[np.ndarray, Array(("M", len(GROUPS)), low=0.0)]
Shared: TypeAlias = Annotated[np.ndarray, Array((SHARED.stop - SHARED.start,))]


@dataclass(frozen=True)
class Heads:
    """Coefficients of every head.

    Attributes:
        coordinate: The scale on which each score is taken.
        density: Of the coordinates.
        slots: Codes per context feature.
        theta: (M, columns) as `HeadColumns` has them: intercept, then the groups in order.
        precision: (M, groups) λ of each group's prior in each head; a large one says that the data
            had no use for it.
        shared: The mean that the objectives share, of the first four groups.
        residual: What is added to the logits that the above give.
    """

    coordinate: Coordinate
    density: Density
    slots: tuple[int, ...]
    theta: Theta
    precision: Precision
    shared: Shared
    residual: Residual

    def logits(self, logits: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the logit of each head, (rows, M): the definition that the kernels follow."""
        contexts, of_row = distinct_contexts(codes, self.slots)
        coordinates = self.coordinate(logits)
        numbers = _numbers(self.density, coordinates, contexts, of_row)  # (rows, M, width)
        columns = HeadColumns(len(self.theta))
        effects = self.density.sum_of(self.theta[:, columns.context].T, contexts)  # (contexts, M)
        heads: np.ndarray = np.einsum("nmk,mk->nm", numbers, self.theta[:, columns.numbers])
        heads += effects[of_row]
        unit, shift, mean, surprise = self.standard(contexts)
        away = coordinates * unit + (shift - mean)[of_row]
        inputs = inputs_of(away, mean[of_row], surprise[of_row])  # (rows, 2M + 1)
        heads += self.residual.logits(heads, inputs, codes)
        return heads  # (rows, M)

    def standard(self, contexts: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return what turns coordinates into the inputs of `Residual`.

        u = ℓ·unit + shift and away = u − mean, with unit (M,), shift and mean (contexts, M); the
        surprise is (contexts, M, M) times away. After a recalibration u is in units of the fit.
        """
        deviation = np.exp(self.density.log_variance / 2)
        unit = 1 / (self.density.scale * deviation)
        mean = self.density.mean_of(contexts) / deviation
        surprise = self.density.precision_of(contexts) * np.outer(deviation, deviation)
        return unit, mean - self.density.centre_of(contexts) * unit, mean, surprise

    def affine(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each context's intercepts (contexts, M) and slopes (contexts, M, M).

        Given the context every head is linear in the coordinates, h = intercept + slope·ℓ, but
        for the curves and surfaces of its residual.
        """
        M = len(self.density.base)
        columns = HeadColumns(M)
        points = np.concatenate([np.zeros((1, M)), np.eye(M)])  # 0 and the unit vectors
        every = np.repeat(np.arange(len(contexts)), M + 1)
        numbers = _numbers(self.density, np.tile(points, (len(contexts), 1)), contexts, every)
        heads = np.einsum("nmk,mk->nm", numbers, self.theta[:, columns.numbers])
        heads = heads.reshape(len(contexts), M + 1, M)
        intercept = heads[:, 0] + self.density.sum_of(self.theta[:, columns.context].T, contexts)
        slope = np.swapaxes(heads[:, 1:] - heads[:, :1], 1, 2)
        more, steeper = self.residual.affine(contexts)
        unit, shift, _, _ = self.standard(contexts)
        stretch = 1 + self.residual.linear[:, 1]
        intercept = stretch * intercept + more + np.einsum("cmj,cj->cm", steeper, shift)
        return intercept, np.ascontiguousarray(stretch[:, None] * slope + steeper * unit)

    def noise_shares(self) -> np.ndarray:
        """Return how much of each score's variance the heads take for noise, 0 to 1."""
        own, surprise = self.theta[:, OWN], self.theta[:, SURPRISE]
        share: np.ndarray = np.clip(-surprise / np.maximum(own, 1e-9), 0, 1)
        return share


def head_sizes(M: int, slots: tuple[int, ...]) -> dict[str, int]:
    """Return the named sizes of the arrays of stored `Heads`."""
    sizes = {"features": len(slots), "columns": HeadColumns(M).total(slots)}
    return {**residual_sizes(M, slots), **sizes}


def _numbers(
    density: Density, coordinates: np.ndarray, contexts: np.ndarray, of_row: np.ndarray
) -> np.ndarray:
    """Return intercept and numbers of every head, (rows, M, width)."""
    rows, M = coordinates.shape
    columns = HeadColumns(M)
    base_variance = np.exp(density.log_variance)
    deviation = np.sqrt(base_variance)
    mean = density.mean_of(contexts)
    away = (coordinates - density.centre_of(contexts)[of_row]) / density.scale  # (rows, M)
    r = np.einsum("nij,nj->ni", density.precision_of(contexts)[of_row], away)
    variance = density.variance_of(contexts)[of_row]
    numbers = np.empty((rows, M, columns.width))
    numbers[:, :, INTERCEPT] = 1.0
    numbers[:, :, OWN] = (away + mean[of_row]) / deviation
    numbers[:, :, BY_CONTEXT] = (variance - base_variance) * r / deviation
    numbers[:, :, SURPRISE] = base_variance * r / deviation
    numbers[:, :, MEAN] = mean[of_row] / deviation
    for m in range(M):
        others = columns.other_than(m)
        numbers[:, m, columns.others] = away[:, others] / deviation[others]
    return numbers
