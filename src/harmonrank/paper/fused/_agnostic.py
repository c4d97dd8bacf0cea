"""Agnostic: the relation-agnostic paths, one number per objective and bucket."""

__all__ = ["Agnostic"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.config import NetworkConfig
from harmonrank.paper.fused._weights import NetworkWeights
from harmonrank.support.kernel import kernel

Matrix = NDArray[np.float64]


class Agnostic:
    """l = g (w2 · x) + w3 · x with the gate g = σ(w · x + b), for every row of the score table.

    Some thousand rows of width 2: one loop each way takes less time than the calls of a dozen array
    operations.

    Attributes:
        columns: l, (objectives · buckets, 1).
    """

    def __init__(self, weights: NetworkWeights, config: NetworkConfig, E: Matrix) -> None:
        M, d = config.objectives, config.width
        self._gate, self._linear, self._E = config.gate, config.linear, E  # (M, B, d)
        # What multiplies x: w2, w3 and, the same for all objectives, w.
        self._W = np.zeros((3, M, d))
        bias = 0.0
        if config.gate:
            self._W[0] = weights["gated.output.weight"].reshape(M, d)
            self._W[2] = weights["gated.gate.weight"]
            bias = weights["gated.gate.bias"][0]
        if config.linear:
            self._W[1] = weights["linear.weight"].reshape(M, d)
        l, self._g, self._kept = np.empty((3, *self._E.shape[:2]))  # noqa: E741
        _multiply(self._E, self._W, bias, l, self._g, self._kept)
        # As a tangent, σ cannot overflow; NumPy's is a vector loop.
        np.tanh(self._g, out=self._g)
        self._g *= 0.5
        self._g += 0.5
        l += self._g * self._kept  # noqa: E741
        self.columns = l.reshape(-1, 1)

    def back(self, d_columns: Matrix, dE: Matrix, gradient: NetworkWeights) -> None:
        """Add to the table's gradient dE, (M, B, d), and write those of the weights.

        The gate's part is eq. 18 of docs/kernels.md.
        """
        dW, dl = np.zeros_like(self._W), d_columns.reshape(self._E.shape[:2])
        d_bias = _take_back(self._E, self._W, self._g, self._kept, dl, dE, dW)
        if self._gate:
            gradient["gated.output.weight"][...] = dW[0].reshape(1, -1)
            gradient["gated.gate.weight"][0] = dW[2].sum(axis=0)
            gradient["gated.gate.bias"][0] = d_bias
        if self._linear:
            gradient["linear.weight"][...] = dW[1].reshape(1, -1)


@kernel
def _multiply(E: Any, W: Any, bias: float, linear: Any, gate: Any, through: Any) -> None:
    """Fill w3 · x, half of w · x + b, and w2 · x."""
    M, B, d = E.shape
    for m in range(M):
        for b in range(B):
            linear[m, b], gate[m, b], through[m, b] = 0.0, 0.5 * bias, 0.0
            for c in range(d):
                through[m, b] += W[0, m, c] * E[m, b, c]
                linear[m, b] += W[1, m, c] * E[m, b, c]
                gate[m, b] += 0.5 * W[2, m, c] * E[m, b, c]


@kernel
def _take_back(E: Any, W: Any, g: Any, kept: Any, dl: Any, dE: Any, dW: Any) -> float:
    """Add to dE and dW; return the gate's d_bias."""
    M, B, d = E.shape
    d_bias = 0.0
    for m in range(M):
        for b in range(B):
            d_kept = dl[m, b] * g[m, b]
            d_gate = d_kept * kept[m, b] * (1 - g[m, b])
            d_bias += d_gate
            for c in range(d):
                dE[m, b, c] += W[0, m, c] * d_kept + W[1, m, c] * dl[m, b] + W[2, m, c] * d_gate
                dW[0, m, c] += d_kept * E[m, b, c]
                dW[1, m, c] += dl[m, b] * E[m, b, c]
                dW[2, m, c] += d_gate * E[m, b, c]
    return d_bias
