"""Tables: a network folded into rows that the kernels look up, and the way back for gradients.

The arithmetic here is float64 and its cost does not depend on the rows; docs/kernels.md derives it.
"""

__all__ = ["Tables"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.kernel import kernel
from harmonrank.model.config import NetworkConfig
from harmonrank.model.fused._agnostic import Agnostic
from harmonrank.model.fused._relation import Relation
from harmonrank.model.fused._weights import Weights

Matrix = NDArray[np.float64]


class Tables:
    """What the kernels look up for a score's bucket and for a context's code.

    Attributes:
        width: Width d of a token, made even.
        first: Where each objective begins in `cells` and each context feature in `contexts`.
        sizes: How many rows each objective and each context feature has there.
        cells: One row per objective and bucket: x, y = Gᵀx, z = Vᵀx and l.
        contexts: A constant row, then one row per code: its share of u.
        bias: What is added to every fused score.
    """

    def __init__(self, config: NetworkConfig) -> None:
        assert config.buckets is not None, "without buckets there is nothing to look up"
        M, slots = config.objectives, config.context_slots if config.personalised else ()
        self.config, self.buckets = config, config.buckets
        self.width = config.width + config.width % 2
        self.sizes = np.array([self.buckets] * M + list(slots))
        starts = np.cumsum([1, *slots])[:-1]
        self.first = np.r_[np.arange(M) * self.buckets, starts].astype(np.int64)
        listeners = 1 if config.cross_attention else M
        self.cells = np.zeros((M * self.buckets, 2 * self.width + listeners + 1), np.float32)
        asked = self.width if config.cross_attention else 2  # even, as the kernels want it
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
        # x, y and z are linear in the score table: K = [1 | G | V].
        K = np.zeros((d, self.cells.shape[1] - 1))
        K[:, :d], K[:, D : D + d], K[:, 2 * D :] = np.eye(d), self._relation.G, self._relation.V
        _fill_cells(weights["scores.table"], K, self._agnostic.l.ravel(), self.cells)
        self._K, U = K, self._relation.U
        if len(self._of_feature):
            self._P = self._of_feature * weights["context.table"]  # (codes, features)
            self.contexts[1:, : len(U)] = self._P @ U.T
        elif self.config.cross_attention:
            self.contexts[0, : len(U)] = U[:, 0]
        self.bias = np.float32(sum(weights[name][0] for name in self._biases))

    def back(self, d_cells: Matrix, d_contexts: Matrix, d_bias: float, gradient: Weights) -> None:
        """Write the gradient of all weights, given those of the rows and the bias."""
        d, D = self.config.width, self.width
        dE = gradient["scores.table"]
        dK = np.zeros_like(self._K)
        _take_back(self._weights["scores.table"], self._K, d_cells, dE, dK)
        shape = (self.config.objectives, self.buckets)
        self._agnostic.back(d_cells[:, -1].reshape(shape), dE.reshape(*shape, d), gradient)
        dU = self._back_contexts(d_contexts, gradient)
        self._relation.back(dK[:, D : D + d], dU, dK[:, 2 * D :], gradient)
        for name in self._biases:
            gradient[name][0] = d_bias

    def _back_contexts(self, d_contexts: Matrix, gradient: Weights) -> Matrix:
        U = self._relation.U
        d_rows = d_contexts[:, : len(U)]
        if len(self._of_feature):
            dP = (d_rows[1:] @ U) * self._of_feature
            gradient["context.table"][:, 0] = dP.sum(axis=1)
            return d_rows[1:].T @ self._P
        return d_rows[:1].T if self.config.cross_attention else np.zeros_like(U)

    @property
    def network(self) -> tuple[Any, Any, int, int, bool, bool, Any]:
        """What a kernel is told of the network."""
        c = self.config
        sizes = (c.objectives, self.width, c.self_attention, c.cross_attention)
        return (self.cells, self.contexts, *sizes, self.bias)

    @property
    def _biases(self) -> list[str]:
        names = {"relation_aware.output.bias": True, "gated.output.bias": self.config.gate}
        return [n for n, there in {**names, "linear.bias": self.config.linear}.items() if there]


@kernel
def _fill_cells(E: Any, K: Any, l: Any, cells: Any) -> None:  # noqa: E741
    """Write [E K | l]."""
    for row in range(len(cells)):
        for field in range(K.shape[1]):
            total = 0.0
            for c in range(len(K)):
                total += E[row, c] * K[c, field]
            cells[row, field] = total
        cells[row, -1] = l[row]


@kernel
def _take_back(E: Any, K: Any, d_cells: Any, dE: Any, dK: Any) -> None:
    """Write dE = d_cells Kᵀ and add Eᵀ d_cells to dK; the last field, l, has no part in it."""
    for row in range(len(E)):
        for c in range(len(K)):
            total = 0.0
            for field in range(K.shape[1]):
                total += d_cells[row, field] * K[c, field]
                dK[c, field] += E[row, c] * d_cells[row, field]
            dE[row, c] = total
