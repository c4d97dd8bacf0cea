"""Means over a normal variable by Gauss–Hermite."""

__all__ = ["NODES", "normal_nodes"]

from functools import cache

import numpy as np

from harmonrank.worlds._parts import Floats

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
