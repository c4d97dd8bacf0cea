"""Agnostic: the relation-agnostic paths, one number per objective and bucket."""

__all__ = ["Agnostic"]

import numpy as np
from numpy.typing import NDArray

from harmonrank.model.fused._weights import Weights
from harmonrank.model.network import NetworkConfig

Matrix = NDArray[np.float64]


class Agnostic:
    """l = g (w2 · x) + w3 · x with the gate g = σ(w · x + b), for every row of the score table."""

    def __init__(self, weights: Weights, config: NetworkConfig) -> None:
        self._weights, self._config = weights, config
        self._E = weights["scores.table"].reshape(config.objectives, -1, config.width)  # (M, B, d)
        self.l = np.zeros(self._E.shape[:2])
        if config.gate:
            self._gate = weights["gated.gate.weight"][0]  # (d,)
            # The tangent form of σ cannot overflow.
            self._g = 0.5 + 0.5 * np.tanh(
                0.5 * (self._E @ self._gate + weights["gated.gate.bias"][0])
            )
            self._kept = self._along("gated.output.weight")
            self.l += self._g * self._kept
        if config.linear:
            self.l += self._along("linear.weight")

    def _along(self, name: str) -> Matrix:
        """Return w_m · x for every row of the table, (M, B)."""
        return (self._E @ self._column(self._weights, name))[:, :, 0]

    def _column(self, weights: Weights, name: str) -> Matrix:
        """View a (1, M·d) weight as (M, d, 1)."""
        return weights[name].reshape(len(self._E), -1, 1)

    def back(self, dl: Matrix, dE: Matrix, gradient: Weights) -> None:
        """Add to the table's gradient dE, (M, B, d), and write those of the weights."""
        if self._config.linear:
            self._back_along("linear.weight", dl, dE, gradient)
        if self._config.gate:
            self._back_along("gated.output.weight", dl * self._g, dE, gradient)
            da = dl * self._kept * self._g * (1 - self._g)
            dE += da[:, :, None] * self._gate
            gradient["gated.gate.weight"][0] = da.ravel() @ self._E.reshape(da.size, -1)
            gradient["gated.gate.bias"][0] = da.sum()

    def _back_along(self, name: str, d_out: Matrix, dE: Matrix, gradient: Weights) -> None:
        dE += d_out[:, :, None] * self._column(self._weights, name).mT
        self._column(gradient, name)[...] = self._E.mT @ d_out[:, :, None]
