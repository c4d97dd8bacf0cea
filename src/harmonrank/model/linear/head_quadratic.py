"""HeadQuadratic: what old rows say about the heads, as sums that add up and fade.

Near its top a log-likelihood is as good as quadratic, and a quadratic is its curvature K and its
pull b, L(θ) = bᵀθ − ½ θᵀKθ + const. With gradient g and curvature K at θ₀, b = g + Kθ₀. Those of
two logs add up to that of both, so rows that were looked at once need not be kept: eq. 13 of
docs/default-method.md.
"""

__all__ = ["HeadQuadratic", "HeadRows", "Pooled"]

from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np

from harmonrank.support.newton import Likelihood
from harmonrank.support.storage.arrays import Array


class HeadRows(Protocol):
    """What is known of rows that heads are fitted on."""

    def likelihood(self, theta: np.ndarray) -> Likelihood:
        """Return the log-likelihoods of all heads at (M, D) theta."""
        ...


@dataclass(frozen=True)
class HeadQuadratic:
    """Quadratic log-likelihoods of M heads with D coefficients each.

    Attributes:
        pull: (M, D), gradients at 0.
        curvature: (M, D, D).
    """

    pull: Annotated[np.ndarray, Array(("M", "columns"))]
    curvature: Annotated[np.ndarray, Array(("M", "columns", "columns"))]

    @classmethod
    def at(cls, theta: np.ndarray, data: HeadRows) -> "HeadQuadratic":
        """Return the quadratics that touch the likelihoods of some rows at theta."""
        _, slope, curvature = data.likelihood(theta)
        return cls(slope + np.einsum("mij,mj->mi", curvature, theta), curvature)

    def likelihood(self, theta: np.ndarray) -> Likelihood:
        """Return the quadratics at theta, but for a constant; no row is looked at."""
        lost = np.einsum("mij,mj->mi", self.curvature, theta)
        value = (theta * (self.pull - 0.5 * lost)).sum(axis=1)
        return Likelihood(value, self.pull - lost, self.curvature)

    def __add__(self, other: "HeadQuadratic") -> "HeadQuadratic":
        return HeadQuadratic(self.pull + other.pull, self.curvature + other.curvature)

    def faded(self, factor: float) -> "HeadQuadratic":
        """Return what rows say that count so much less."""
        return HeadQuadratic(factor * self.pull, factor * self.curvature)

    def widened(self, columns: np.ndarray, size: int) -> "HeadQuadratic":
        """Return it with coefficients that old rows knew nothing of; `columns` are the old ones."""
        M = len(self.pull)
        pull, curvature = np.zeros((M, size)), np.zeros((M, size, size))
        pull[:, columns] = self.pull
        curvature[:, columns[:, None], columns] = self.curvature
        return HeadQuadratic(pull, curvature)


@dataclass(frozen=True)
class Pooled:
    """The likelihoods of several logs."""

    parts: tuple[HeadRows, ...]

    def likelihood(self, theta: np.ndarray) -> Likelihood:
        """Return the sums of all."""
        likelihoods = zip(*(part.likelihood(theta) for part in self.parts), strict=True)
        return Likelihood(*(np.sum(np.stack(sums), axis=0) for sums in likelihoods))
