"""Folding: the projections and the paths of a network as small matrices and columns, and back."""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.config import NetworkConfig
from harmonrank.support.kernel import kernel

if TYPE_CHECKING:
    from torch import nn

Vector = NDArray[np.float64]

Matrix = NDArray[np.float64]
_PATH = "relation_aware."


class WeightVector:
    """A float64 vector with named views, laid out like a network's parameters.

    Args:
        like: Arrays or tensors by name, whose values are copied.

    >>> weights = WeightVector({"weight": np.array([[1.0, 2.0]]), "bias": np.array([3.0])})
    >>> weights.vector
    array([1., 2., 3.])
    >>> weights["weight"]
    array([[1., 2.]])
    """

    def __init__(self, like: Mapping[str, NDArray[Any]]) -> None:
        self.vector: Vector = np.empty(sum(value.size for value in like.values()))
        self._views: dict[str, Vector] = {}
        start = 0
        for name, value in like.items():
            self._views[name] = self.vector[start : start + value.size].reshape(value.shape)
            self._views[name][...] = value
            start += value.size

    @classmethod
    def of(cls, network: "nn.Module") -> Self:
        """Return the weights of a network."""
        return cls({name: value.detach().numpy() for name, value in network.named_parameters()})

    def __getitem__(self, name: str) -> Vector:
        return self._views[name]

    def marked(self, chosen: Callable[[str], bool]) -> Vector:
        """Return a vector with 1 at the weights whose name is chosen, and 0 elsewhere."""
        parts = [np.full(view.size, float(chosen(name))) for name, view in self._views.items()]
        return np.concatenate(parts)


class Relation:
    """Three small matrices that replace all projections, and the chain rule back to these.

    They are those of eqs. 1, 2 and 3 of docs/kernels.md; without cross-attention U and V differ.

    Attributes:
        G: (d, d), the attention of token i to j is xᵢᵀ G xⱼ before the softmax.
        U: (d, features), u = U P is the query of the context P; without cross-attention the
            (1, features) weights of P itself.
        V: (d, 1), z = Vᵀ x is what a token adds to the score when it is attended to; without
            cross-attention (d, objectives), by the attending objective.
    """

    def __init__(self, weights: WeightVector, config: NetworkConfig) -> None:
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

    def back(self, dG: Matrix, dU: Matrix, dV: Matrix, gradient: WeightVector) -> None:
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


class Agnostic:
    """The gate and the linear path of every row x of the score table.

    l = g κ + t with the gate g = σ(q), where q = w · x + b, κ = w2 · x and t = w3 · x. These three
    are linear in x, so that interpolating them is exact; l is not linear, and the kernel then
    computes it. Without interpolation it is computed here: a few thousand rows of width 2, for
    which one loop each way is faster than a dozen array operations.

    Attributes:
        columns: q, κ and t with interpolation, (objectives · rows, 3); otherwise l, (…, 1).
    """

    def __init__(
        self, weights: WeightVector, config: NetworkConfig, E: Matrix, *, smooth: bool
    ) -> None:
        (M, d), bias = (config.objectives, config.width), 0.0
        self._config, self._E, self._smooth = config, E, smooth  # (M, rows, d)
        self._W = np.zeros((M, d, 3))  # w, the same for all objectives, w2 and w3
        if config.gate:
            self._W[:, :, 0] = weights["gated.gate.weight"]
            self._W[:, :, 1] = weights["gated.output.weight"].reshape(M, d)
            bias = weights["gated.gate.bias"][0]
        if config.linear:
            self._W[:, :, 2] = weights["linear.weight"].reshape(M, d)
        if smooth:
            fields = E @ self._W  # (M, rows, 3)
            fields[:, :, 0] += bias
            self.columns = fields.reshape(-1, 3)
            return
        l, self._g, self._kept = np.empty((3, *E.shape[:2]))  # noqa: E741
        _multiply(E, self._W, bias, l, self._g, self._kept)
        # As a tangent, σ cannot overflow; NumPy's is a vector loop.
        np.tanh(self._g, out=self._g)
        self._g *= 0.5
        self._g += 0.5
        l += self._g * self._kept  # noqa: E741
        self.columns = l.reshape(-1, 1)

    def back(self, d_columns: Matrix, dE: Matrix, gradient: WeightVector) -> None:
        """Add to the table's gradient dE, (M, rows, d), and write those of the weights.

        The gate's part is eq. 18 of docs/kernels.md.
        """
        E, W = self._E, self._W
        if self._smooth:
            d_fields = d_columns.reshape(*E.shape[:2], 3)
            dE += d_fields @ W.transpose(0, 2, 1)
            dW, d_bias = E.transpose(0, 2, 1) @ d_fields, d_fields[:, :, 0].sum()  # (M, d, 3)
        else:
            dW, dl = np.zeros_like(W), d_columns.reshape(E.shape[:2])
            d_bias = _add_slopes(E, W, self._g, self._kept, dl, dE, dW)
        if self._config.gate:
            gradient["gated.gate.weight"][0] = dW[:, :, 0].sum(axis=0)
            gradient["gated.gate.bias"][0] = d_bias
            gradient["gated.output.weight"][...] = dW[:, :, 1].reshape(1, -1)
        if self._config.linear:
            gradient["linear.weight"][...] = dW[:, :, 2].reshape(1, -1)


@kernel
def _multiply(E: Any, W: Any, bias: float, linear: Any, gate: Any, through: Any) -> None:
    """Fill w3 · x, half of w · x + b, and w2 · x."""
    M, B, d = E.shape
    for m in range(M):
        for b in range(B):
            linear[m, b], gate[m, b], through[m, b] = 0.0, 0.5 * bias, 0.0
            for c in range(d):
                through[m, b] += W[m, c, 1] * E[m, b, c]
                linear[m, b] += W[m, c, 2] * E[m, b, c]
                gate[m, b] += 0.5 * W[m, c, 0] * E[m, b, c]


@kernel
def _add_slopes(E: Any, W: Any, g: Any, kept: Any, dl: Any, dE: Any, dW: Any) -> float:
    """Add to dE and dW; return the gate's d_bias."""
    M, B, d = E.shape
    d_bias = 0.0
    for m in range(M):
        for b in range(B):
            d_kept = dl[m, b] * g[m, b]
            d_gate = d_kept * kept[m, b] * (1 - g[m, b])
            d_bias += d_gate
            for c in range(d):
                dE[m, b, c] += W[m, c, 1] * d_kept + W[m, c, 2] * dl[m, b] + W[m, c, 0] * d_gate
                dW[m, c, 1] += d_kept * E[m, b, c]
                dW[m, c, 2] += dl[m, b] * E[m, b, c]
                dW[m, c, 0] += d_gate * E[m, b, c]
    return d_bias
