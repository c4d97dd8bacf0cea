"""HeadCurve: the heads' log-likelihoods near a point, and their top under any prior.

The precisions of the prior change many times while the curve stays, and most columns are context
values, which share one precision λ. So their part of the curvature, C = Q Λ Qᵀ, is turned to its
axes once, and with A the part of the K numbers before them, B the part between both and d the
precisions of the K numbers, each prior costs K columns in place of all of them:

    S = A + d − B (C + λ)⁻¹ Bᵀ,    (C + λ)⁻¹ = Q (Λ + λ)⁻¹ Qᵀ.
"""

__all__ = ["HeadCurve"]

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harmonrank.model.linear.head_columns import OTHERS, HeadColumns
from harmonrank.model.linear.head_quadratic import Derivatives
from harmonrank.support.parallel import map_parts

# Of fewer context values all columns are inverted together, which takes less.
_MANY_VALUES = 100


@dataclass(frozen=True)
class HeadCurve:
    """Log-likelihoods to second order.

    Attributes:
        theta: (M, D), the point.
        slope: (M, D), gradients there.
        curvature: (M, D, D), negative Hessians.
    """

    theta: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray

    @classmethod
    def at(cls, theta: np.ndarray, data: Derivatives) -> "HeadCurve":
        """Look at all rows once."""
        return cls(theta, *data.derivatives(theta))

    def top(self, prior: np.ndarray, decay: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the largest posterior, and the posterior variances.

        Args:
            prior: (D,) means.
            decay: (D,) precisions; that of all context values is the same.
        """
        pull = self.slope - decay * (self.theta - prior)
        step, spread = self._solved(pull, decay)
        # A logit that jumps by more than 2 has left the region that the curve describes.
        reach = np.abs(step[:, :OTHERS]).max(axis=1, keepdims=True)
        step = step * np.minimum(1.0, 2.0 / np.maximum(reach, 1e-12))
        return self.theta + step, spread

    def _solved(self, pull: np.ndarray, decay: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the solution for each head, and the diagonal of the inverse."""
        M, D = self.theta.shape
        if D - HeadColumns(M).width < _MANY_VALUES:
            covariance = np.linalg.inv(self.curvature + np.diag(decay))
            step = (covariance @ pull[:, :, None])[:, :, 0]
            return step, np.diagonal(covariance, axis1=1, axis2=2)
        found = map_parts(lambda m: self._solved_by_axes(m, pull[m], decay), range(M))
        steps, spreads = zip(*found, strict=True)
        return np.stack(steps), np.stack(spreads)

    @cached_property
    def _axes(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The eigenvalues and axes of each head's context values, and B along the axes."""
        K = HeadColumns(len(self.theta)).width

        def turned(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            values, axes = np.linalg.eigh(self.curvature[m, K:, K:])
            return np.maximum(values, 0.0), axes, self.curvature[m, :K, K:] @ axes

        return map_parts(turned, range(len(self.theta)))

    def _solved_by_axes(
        self, m: int, pull: np.ndarray, decay: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        values, axes, across = self._axes[m]
        K = len(across)
        inverse = 1 / (values + decay[K])
        weighed = across * inverse  # (K, values)
        numbers = self.curvature[m, :K, :K] + np.diag(decay[:K]) - weighed @ across.T
        covariance = np.linalg.inv(numbers)
        turned = pull[K:] @ axes
        first = covariance @ (pull[:K] - weighed @ turned)
        second = axes @ (inverse * turned - weighed.T @ first)
        # The covariance of context values is Q (1/(Λ+λ) + Wᵀ S⁻¹ W) Qᵀ, with W the weighed B.
        apart = axes @ weighed.T  # (values, K)
        own = axes**2 @ inverse + np.einsum("ik,kl,il->i", apart, covariance, apart, optimize=True)
        return np.append(first, second), np.append(np.diagonal(covariance), own)
