"""Relation: the projections of the relation-aware path, folded to the width of a token."""

__all__ = ["Relation"]

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.config import NetworkConfig
from harmonrank.paper.fused._weights import NetworkWeights

Matrix = NDArray[np.float64]
_PATH = "relation_aware."


class Relation:
    """Three small matrices that stand for all projections, and the chain rule back to these.

    They are those of eqs. 1, 2 and 3 of docs/kernels.md; without cross-attention U and V differ.

    Attributes:
        G: (d, d), the attention of token i to j is xᵢᵀ G xⱼ before the softmax.
        U: (d, features), u = U P is what the context P asks for; without cross-attention the
            (1, features) weights of P itself.
        V: (d, 1), z = Vᵀ x is what a token adds to the score once attended to; without
            cross-attention (d, objectives), by who listens.
    """

    def __init__(self, weights: NetworkWeights, config: NetworkConfig) -> None:
        self._weights, self._config, self._scale = weights, config, 1 / sqrt(config.key_width)
        self.G = np.zeros((config.width, config.width))
        if config.self_attention:
            self.G = self._of("query").T @ self._of("key") * self._scale
        if config.cross_attention:
            self._H = self._of("context_key").T @ self._of("context_query") * self._scale  # (k, C)
            self._R = self._of("context_value").T @ self._of("output").T  # (k, 1)
            self.U = self._of("value").T @ self._H
        else:
            heard = config.objectives * config.key_width
            self._R = self._of("output")[0, :heard].reshape(-1, config.key_width).T  # (k, M)
            self.U = self._of("output")[:, heard:]
        self.V = self._of("value").T @ self._R

    def _of(self, name: str) -> Matrix:
        return self._weights[f"{_PATH}{name}.weight"]

    def back(self, dG: Matrix, dU: Matrix, dV: Matrix, gradient: NetworkWeights) -> None:
        """Write the gradients of all projections, given those of G, U and V.

        The chain rule is eqs. 13, 14, 15 and 16 of docs/kernels.md.
        """

        def to(name: str) -> Matrix:
            return gradient[f"{_PATH}{name}.weight"]

        if self._config.self_attention:
            to("query")[...] = self._of("key") @ dG.T * self._scale
            to("key")[...] = self._of("query") @ dG * self._scale
        dR = self._of("value") @ dV
        to("value")[...] = self._R @ dV.T
        if not self._config.cross_attention:
            heard = dR.size
            to("output")[0, :heard], to("output")[:, heard:] = dR.T.ravel(), dU
            return
        to("value")[...] += self._H @ dU.T
        dH = self._of("value") @ dU * self._scale
        to("context_key")[...] = self._of("context_query") @ dH.T
        to("context_query")[...] = self._of("context_key") @ dH
        to("context_value")[...] = self._of("output").T @ dR.T
        to("output")[...] = (self._of("context_value") @ dR).T
