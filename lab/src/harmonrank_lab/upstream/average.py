"""Average: a moving average of a network's weights, which is what predicts."""

__all__ = ["Average"]

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

_NOT_WEIGHTS = "embedding.squares"
_FADING = 3


class Average(nn.Module):
    """A network in training, and the moving average of its weights.

    ā ← ā + (w − ā)·max(share, 4/(n + 3)) at the n-th `update`: the first ones fade fast (Shamir
    and Zhang, 2013), then it is an exponential average. The steps of stochastic training circle
    around the optimum, most widely for the weights of rare objectives; the mean of where they
    were lies closer to it than where they end (Polyak and Juditsky, 1992).

    Both are part of the state, so that a checkpoint holds the average too.

    Args:
        network: To be trained.
        share: Weight of the newest in the average; 1 keeps the newest alone.

    >>> layer = nn.Linear(1, 1, bias=False)
    >>> average = Average(layer, share=0.5)
    >>> for value in (0.0, 1.0, 3.0):
    ...     _ = layer.weight.data.fill_(value)
    ...     average.update()
    >>> with average.used():
    ...     round(layer.weight.item(), 4)
    2.2667
    >>> layer.weight.item()
    3.0
    """

    updates: Tensor

    def __init__(self, network: nn.Module, share: float) -> None:
        super().__init__()
        self.network, self._share = network, share
        self._names = [n for n in network.state_dict() if n != _NOT_WEIGHTS]
        self.register_buffer("updates", torch.zeros(1, dtype=torch.int64))
        for number, (_, weight) in enumerate(self._pairs(means=False)):
            self.register_buffer(f"mean{number}", weight.clone())

    def _pairs(self, *, means: bool = True) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the mean and the present value of every weight."""
        present = self.network.state_dict()
        for number, name in enumerate(self._names):
            weight = present[name].detach()
            yield (self.get_buffer(f"mean{number}") if means else weight), weight

    @torch.no_grad()
    def update(self) -> None:
        """Take the present weights into the average."""
        self.updates += 1
        share = max(self._share, (1 + _FADING) / (int(self.updates) + _FADING))
        for mean, weight in self._pairs():
            mean.lerp_(weight, share)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Give the network its average weights, and the present ones back at the end."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange average and present weights."""
        for mean, weight in self._pairs():
            held = mean.clone()
            mean.copy_(weight)
            weight.copy_(held)
