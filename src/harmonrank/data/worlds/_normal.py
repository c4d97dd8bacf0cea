"""Means over a normal variable by Gauss–Hermite."""

__all__ = ["NODES", "normal_nodes", "sigmoid_mean"]

from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from harmonrank.data.worlds._parts import Floats

NODES = 64


@cache
def normal_nodes(count: int = NODES) -> tuple[Floats, Floats]:
    """Return nodes and weights of the Gauss–Hermite rule for a standard normal variable.

    Nodes that weigh less than 1e-18 cannot change a sum in float64 and are left out.

    >>> x, w = normal_nodes(64)
    >>> round(float(w @ x**2), 12)
    1.0
    """
    x, w = np.polynomial.hermite_e.hermegauss(count)
    w = w / w.sum()
    return x[w > 1e-18], w[w > 1e-18]


def sigmoid_mean(mean: ArrayLike, spread: ArrayLike, nodes: int = NODES) -> Floats:
    """Return E σ(Z) for Z normal with this mean and standard deviation.

    With 64 nodes the error stays below 1e-10 for a spread up to 1.8, below 1e-7 up to 3.

    >>> sigmoid_mean([0.0, -4.0], [2.0, 0.0]).round(6)
    array([0.5 , 0.017986])
    """
    x, w = normal_nodes(nodes)
    z = np.asarray(mean)[..., None] + np.multiply.outer(spread, x)
    value: Floats = (1 / (1 + np.exp(-z))) @ w
    return value
