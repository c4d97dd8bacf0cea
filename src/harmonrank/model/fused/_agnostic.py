"""Agnostic: the relation-agnostic paths, one number per objective and bucket."""

__all__ = ["Agnostic"]

import numpy as np
from numpy.typing import NDArray

from harmonrank.model.fused._weights import Weights
from harmonrank.model.network import NetworkConfig

Matrix = NDArray[np.float64]


class Agnostic:
    """l = g (w2 · x) + w3 · x with the gate g = σ(w · x + b), for every row of the score table.

    Attributes:
        l: (objectives, buckets).
    """

    def __init__(self, weights: Weights, config: NetworkConfig) -> None:
        M, d = config.objectives, config.width
        self._gate, self._linear = config.gate, config.linear
        self._E = weights["scores.table"].reshape(M, -1, d)  # (M, B, d)
        # The columns that multiply x: w2, w3 and, the same for all objectives, w.
        self._W = np.zeros((M, d, 3))
        if config.gate:
            self._W[:, :, 0] = weights["gated.output.weight"].reshape(M, d)
            self._W[:, :, 2] = weights["gated.gate.weight"]
        if config.linear:
            self._W[:, :, 1] = weights["linear.weight"].reshape(M, d)
        self._kept, linear, gate = np.moveaxis(self._E @ self._W, 2, 0)  # (M, B) each
        if config.gate:
            gate = gate + weights["gated.gate.bias"][0]
        # As a tangent, σ cannot overflow.
        self._g = 0.5 + 0.5 * np.tanh(0.5 * gate)
        self.l = self._g * self._kept + linear

    def back(self, dl: Matrix, dE: Matrix, gradient: Weights) -> None:
        """Add to the table's gradient dE, (M, B, d), and write those of the weights."""
        d_kept = dl * self._g
        d_gate = d_kept * self._kept * (1 - self._g)
        d_columns = np.stack([d_kept, dl, d_gate], axis=2)  # (M, B, 3)
        dE += d_columns @ self._W.mT
        dW = self._E.mT @ d_columns  # (M, d, 3)
        if self._gate:
            gradient["gated.output.weight"][...] = dW[:, :, 0].reshape(1, -1)
            gradient["gated.gate.weight"][0] = dW[:, :, 2].sum(axis=0)
            gradient["gated.gate.bias"][0] = d_gate.sum()
        if self._linear:
            gradient["linear.weight"][...] = dW[:, :, 1].reshape(1, -1)
