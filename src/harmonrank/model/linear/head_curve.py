"""HeadCurve: the heads' log-likelihoods near a point, and their top under any prior.

The precisions of the prior change many times while the curve stays, and most columns are context
values, which share one precision λ in a head. So their part of the curvature, C = Q Λ Qᵀ, is
turned to its axes once, and with A the part of the K numbers before them, B the part between both
and d the precisions of the K numbers, each prior costs K columns in place of all of them:

    S = A + d − B (C + λ)⁻¹ Bᵀ,    (C + λ)⁻¹ = Q (Λ + λ)⁻¹ Qᵀ.
"""

__all__ = ["HeadCurve"]

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harmonrank.model.linear.head_columns import OTHERS, HeadColumns
from harmonrank.support.newton import Likelihood, Prior
from harmonrank.support.parallel import map_parts

# Of fewer context values all columns are inverted together, which takes less.
_MANY_VALUES = 100


@dataclass(frozen=True)
class HeadCurve:
    """Log-likelihoods to second order.

    Attributes:
        theta: (M, D), the point.
        there: The likelihoods at it.
    """

    theta: np.ndarray
    there: Likelihood

    def top(self, prior: Prior) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the largest posterior, and the posterior variances.

        All context values of a head have one precision.
        """
        M, D = self.theta.shape
        if D - HeadColumns(M).width < _MANY_VALUES:
            target, variance = prior.top(self.theta, self.there)
            step = target - self.theta
        else:
            solved = map_parts(lambda m: self._solved_by_axes(m, prior), range(M))
            step, variance = map(np.stack, zip(*solved, strict=True))
        # A logit that jumps by more than 2 has left the region that the curve describes.
        reach = np.abs(step[:, :OTHERS]).max(axis=1, keepdims=True)
        return self.theta + step * np.minimum(1.0, 2.0 / np.maximum(reach, 1e-12)), variance

    @cached_property
    def _axes(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The eigenvalues and axes of each head's context values, and B along the axes."""
        K, curvature = HeadColumns(len(self.theta)).width, self.there.curvature

        def turned(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            values, axes = np.linalg.eigh(curvature[m, K:, K:])
            return np.maximum(values, 0.0), axes, curvature[m, :K, K:] @ axes

        return map_parts(turned, range(len(self.theta)))

    def _solved_by_axes(self, m: int, prior: Prior) -> tuple[np.ndarray, np.ndarray]:
        """Return the step of a head, and the diagonal of the inverse."""
        (values, axes, across), decay = self._axes[m], prior.decay[m]
        pull = self.there.slope[m] - decay * (self.theta[m] - prior.mean)
        K = len(across)
        inverse = 1 / (values + decay[K])
        weighed = across * inverse  # (K, values)
        numbers = self.there.curvature[m, :K, :K] + np.diag(decay[:K]) - weighed @ across.T
        covariance = np.linalg.inv(numbers)
        turned = pull[K:] @ axes
        first = covariance @ (pull[:K] - weighed @ turned)
        second = axes @ (inverse * turned - weighed.T @ first)
        # The covariance of context values is Q (1/(Λ+λ) + Wᵀ S⁻¹ W) Qᵀ, with W the weighed B.
        apart = axes @ weighed.T  # (values, K)
        own = axes**2 @ inverse + np.einsum("ik,kl,il->i", apart, covariance, apart, optimize=True)
        return np.append(first, second), np.append(np.diagonal(covariance), own)
