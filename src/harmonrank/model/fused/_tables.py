"""Tables: a network folded into rows that the kernels look up, and the way back for gradients.

The arithmetic here is float64 and its cost does not depend on the rows; docs/kernels.md derives it.
"""

__all__ = ["Tables"]

import numpy as np
from numpy.typing import NDArray

from harmonrank.model.fused._agnostic import Agnostic
from harmonrank.model.fused._relation import Relation
from harmonrank.model.fused._weights import Weights
from harmonrank.model.network import NetworkConfig

Matrix = NDArray[np.float64]


class Tables:
    """What the kernels look up for a score's bucket and for a context's code.

    Attributes:
        width: Width d of a token, made even.
        first: Where each objective begins in `cells` and each context feature in `contexts`.
        cells: One row per objective and bucket: x, y = Gᵀx, z = Vᵀx and l.
        contexts: A constant row, then one row per code: its share of u.
        bias: What is added to every fused score.
    """

    def __init__(self, config: NetworkConfig) -> None:
        assert config.buckets is not None, "without buckets there is nothing to look up"
        M, slots = config.objectives, config.context_slots if config.personalised else ()
        self.config, self.buckets = config, config.buckets
        self.width = config.width + config.width % 2
        starts = np.cumsum([1, *slots])[:-1]
        self.first = np.r_[np.arange(M) * self.buckets, starts].astype(np.int64)
        listeners = 1 if config.cross_attention else M
        self.cells = np.zeros((M * self.buckets, 2 * self.width + listeners + 1), np.float32)
        asked = self.width if config.cross_attention else 1
        self.contexts = np.zeros((1 + sum(slots), asked), np.float32)
        self.bias = np.float32(0)
        # Which feature a code belongs to, as a matrix of 0 and 1.
        self._of_feature = np.repeat(np.eye(len(slots)), slots, axis=0)  # (codes, features)

    def fill(self, weights: Weights) -> None:
        """Compute all rows from a network's weights, which must not change before `back`."""
        d, D = self.config.width, self.width
        self._weights = weights
        self._relation = Relation(weights, self.config)
        self._agnostic = Agnostic(weights, self.config)
        E = weights["scores.table"]
        self.cells[:, :d] = E
        self.cells[:, D : D + d] = E @ self._relation.G
        self.cells[:, 2 * D : -1] = E @ self._relation.V
        self.cells[:, -1] = self._agnostic.l.ravel()
        U = self._relation.U
        if len(self._of_feature):
            self._P = self._of_feature * weights["context.table"]  # (codes, features)
            self.contexts[1:, : len(U)] = self._P @ U.T
        elif self.config.cross_attention:
            self.contexts[0, : len(U)] = U[:, 0]
        self.bias = np.float32(sum(weights[name][0] for name in self._biases()))

    def back(self, d_cells: Matrix, d_contexts: Matrix, d_bias: float, gradient: Weights) -> None:
        """Write the gradient of all weights, given those of the rows and the bias."""
        d, D, G, U, V = self.config.width, self.width, *self._relation_matrices()
        E, dE = self._weights["scores.table"], gradient["scores.table"]
        dY, dZ, dl = d_cells[:, D : D + d], d_cells[:, 2 * D : -1], d_cells[:, -1]
        dE[...] = d_cells[:, :d] + dY @ G.T + dZ @ V.T
        shape = (self.config.objectives, self.buckets)
        self._agnostic.back(dl.reshape(shape), dE.reshape(*shape, d), gradient)
        dU = np.zeros_like(U)
        if len(self._of_feature):
            d_rows = d_contexts[1:, : len(U)]
            dP = (d_rows @ U) * self._of_feature
            gradient["context.table"][:, 0] = dP.sum(axis=1)
            dU = d_rows.T @ self._P
        elif self.config.cross_attention:
            dU = d_contexts[:1, : len(U)].T
        self._relation.back(E.T @ dY, dU, E.T @ dZ, gradient)
        for name in self._biases():
            gradient[name][0] = d_bias

    def _relation_matrices(self) -> tuple[Matrix, Matrix, Matrix]:
        return self._relation.G, self._relation.U, self._relation.V

    def _biases(self) -> list[str]:
        names = {"relation_aware.output.bias": True, "gated.output.bias": self.config.gate}
        return [n for n, there in {**names, "linear.bias": self.config.linear}.items() if there]
