"""NetworkWeights: all parameters of a network in one vector, each visible under its own name."""

__all__ = ["NetworkWeights"]

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import nn

Vector = NDArray[np.float64]


class NetworkWeights:
    """A float64 vector with named views, laid out like a network's parameters.

    Args:
        like: Arrays or tensors by name, whose values are taken over.

    >>> weights = NetworkWeights({"weight": np.array([[1.0, 2.0]]), "bias": np.array([3.0])})
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
        return cls(_parameters(network))

    def __getitem__(self, name: str) -> Vector:
        return self._views[name]

    def marked(self, chosen: Callable[[str], bool]) -> Vector:
        """Return a vector with 1 at the weights whose name is chosen, and 0 elsewhere."""
        parts = [np.full(view.size, float(chosen(name))) for name, view in self._views.items()]
        return np.concatenate(parts)

    def read(self, network: "nn.Module") -> None:
        """Take over a network's parameters."""
        for name, value in _parameters(network).items():
            self._views[name][...] = value

    def write(self, network: "nn.Module") -> None:
        """Give a network these parameters, in its own precision."""
        for name, value in _parameters(network).items():
            value[...] = self._views[name]


def _parameters(network: "nn.Module") -> dict[str, NDArray[Any]]:
    """Return a network's parameters as arrays that share its memory."""
    return {name: value.detach().numpy() for name, value in network.named_parameters()}
