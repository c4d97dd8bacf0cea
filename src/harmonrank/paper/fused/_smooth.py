"""Smooth: the relation-agnostic paths where two rows of a table are mixed."""

__all__ = ["SmoothAgnostic"]

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.config import NetworkConfig
from harmonrank.paper.fused._weights import NetworkWeights

Matrix = NDArray[np.float64]


class SmoothAgnostic:
    """What the gate and the linear path need of a row: q = w · x + b, κ = w2 · x and t = w3 · x.

    All three are linear in x, so that mixing two rows of them is exact; l = σ(q) κ + t, which is
    not, is left to the kernel.

    Attributes:
        columns: (objectives · rows, 3).
    """

    def __init__(self, weights: NetworkWeights, config: NetworkConfig, E: Matrix) -> None:
        M, d = config.objectives, config.width
        self._gate, self._linear, self._E = config.gate, config.linear, E  # (M, rows, d)
        self._W = np.zeros((M, d, 3))
        if config.gate:
            self._W[:, :, 0] = weights["gated.gate.weight"]
            self._W[:, :, 1] = weights["gated.output.weight"].reshape(M, d)
        if config.linear:
            self._W[:, :, 2] = weights["linear.weight"].reshape(M, d)
        columns = E @ self._W  # (M, rows, 3)
        if config.gate:
            columns[:, :, 0] += weights["gated.gate.bias"][0]
        self.columns = columns.reshape(-1, 3)

    def back(self, d_columns: Matrix, dE: Matrix, gradient: NetworkWeights) -> None:
        """Add to the table's gradient dE, (M, rows, d), and write those of the weights."""
        d_fields = d_columns.reshape(*self._E.shape[:2], 3)
        dE += d_fields @ self._W.transpose(0, 2, 1)
        dW = self._E.transpose(0, 2, 1) @ d_fields  # (M, d, 3)
        if self._gate:
            gradient["gated.gate.weight"][0] = dW[:, :, 0].sum(axis=0)
            gradient["gated.gate.bias"][0] = d_fields[:, :, 0].sum()
            gradient["gated.output.weight"][...] = dW[:, :, 1].reshape(1, -1)
        if self._linear:
            gradient["linear.weight"][...] = dW[:, :, 2].reshape(1, -1)
