"""Weights: all parameters of a network in one vector, each visible under its own name."""

__all__ = ["Weights"]

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

Vector = NDArray[np.float64]


class Weights:
    """A float64 vector with named views, laid out like a network's parameters.

    >>> weights = Weights(torch.nn.Linear(2, 1))
    >>> weights.vector[:] = [1, 2, 3]
    >>> weights["weight"], weights["bias"]
    (array([[1., 2.]]), array([3.]))
    """

    def __init__(self, network: nn.Module) -> None:
        sizes = {name: value.shape for name, value in network.named_parameters()}
        self.vector: Vector = np.zeros(sum(shape.numel() for shape in sizes.values()))
        self._views: dict[str, Vector] = {}
        start = 0
        for name, shape in sizes.items():
            self._views[name] = self.vector[start : start + shape.numel()].reshape(shape)
            start += shape.numel()

    def __getitem__(self, name: str) -> Vector:
        return self._views[name]

    @torch.no_grad()
    def read(self, network: nn.Module) -> None:
        """Take over a network's parameters."""
        for name, parameter in network.named_parameters():
            self._views[name][...] = parameter.numpy()

    @torch.no_grad()
    def write(self, network: nn.Module) -> None:
        """Give a network these parameters, in its own precision."""
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(self._views[name]))
