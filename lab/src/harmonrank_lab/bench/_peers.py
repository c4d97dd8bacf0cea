"""Peers: packages that do the same work, and our default as a network of PyTorch."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from harmonrank.model import INTERCEPT, SHARED, Coordinate, HeadColumns, Heads
from harmonrank.paper.training import torch_threads
from harmonrank_lab.bench._result import Work


def peer(name: str) -> Any | None:
    """Import a package; None if it is not there or cannot be loaded.

    >>> peer("a_package_that_nobody_wrote") is None
    True
    """
    with _hushed():
        try:
            return import_module(name)
        except Exception:
            # A package that cannot be imported cannot be measured, whatever its reason.
            return None


def on_one_thread(work: Work) -> Work:
    """Return the work with PyTorch kept to one thread.

    On a busy machine its threads wait for each other, and one of them alone is faster.
    """

    def run() -> None:
        with torch_threads(1):
            work()

    return run


def compiled(network: nn.Module, example: tuple[Tensor, ...]) -> nn.Module | None:
    """Return the network by torch.compile; None where there is no compiler."""
    with _hushed():
        try:
            torch._dynamo.reset()
            fast = torch.compile(network)
            fast(*example)
        except Exception:
            return None
    assert isinstance(fast, nn.Module)
    return fast


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Keep what peers print and warn of away from the tables."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


class TorchHeads(nn.Module):
    """Probabilities and their weighted sum, as `harmonrank.model.linear.heads` defines them.

    What the density of the logits says of each context is in tables, as in our kernels; what is
    learned (intercept, four groups, the other scores, context effects) is applied per row.
    """

    first: Tensor
    strides: Tensor
    centre: Tensor
    mean: Tensor
    variance: Tensor
    precision: Tensor
    scale: Tensor
    base_variance: Tensor
    effective: Tensor

    def __init__(self, heads: Heads, effective: np.ndarray) -> None:
        super().__init__()
        density, slots, columns = heads.density, heads.slots, HeadColumns(len(heads.theta))
        self.coordinate = _TorchCoordinate(heads.coordinate)
        every = np.stack(np.unravel_index(np.arange(int(np.prod(slots))), slots), axis=1)
        kinds = ("centre", "mean", "variance", "precision")
        tables = {kind: getattr(density, f"{kind}_of")(every) for kind in kinds}
        tables |= {"scale": density.scale, "effective": effective}
        tables["base_variance"] = np.exp(density.log_variance)
        for name, value in tables.items():
            self.register_buffer(name, torch.tensor(value, dtype=torch.float32))
        strides = np.cumprod([1, *slots[:0:-1]])[::-1].copy()
        self.register_buffer("strides", torch.from_numpy(strides))
        self.register_buffer("first", torch.from_numpy(density.first))
        theta = torch.tensor(heads.theta, dtype=torch.float32)
        self.intercept = nn.Parameter(theta[:, INTERCEPT].clone())  # (M,)
        self.groups = nn.Parameter(theta[:, SHARED].T.contiguous())  # (4, M)
        self.others = nn.Parameter(_spread(theta[:, columns.others]))  # (M, M), diagonal 0
        self.effects = nn.Parameter(theta[:, columns.context].T.contiguous())  # (slots, M)

    def forward(self, scores: Tensor, codes: Tensor) -> Tensor:
        """Return the fused score of each row."""
        p = torch.sigmoid(self.logits(*self.numbers(scores, codes), codes))  # (rows, M)
        return p @ self.effective  # (rows,)

    def numbers(self, scores: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the heads are linear in and is not learned."""
        c = (codes * self.strides).sum(dim=1)  # (rows,)
        s = scores.clamp(1e-9, 1 - 1e-7)
        deviation = self.base_variance.sqrt()
        coordinates = self.coordinate(torch.log(s / (1 - s)))  # (rows, M)
        away, mean = (coordinates - self.centre[c]) / self.scale, self.mean[c]  # (rows, M)
        r = (self.precision[c] @ away.unsqueeze(2)).squeeze(2)  # (rows, M)
        own = self.base_variance * r  # (rows, M)
        groups = [away + mean, self.variance[c] * r - own, own, mean]
        return torch.stack(groups, dim=1) / deviation, away / deviation  # (rows, 4, M), (rows, M)

    def logits(self, groups: Tensor, away: Tensor, codes: Tensor) -> Tensor:
        """Return each head's logit, (rows, M)."""
        own = (groups * self.groups).sum(dim=1)  # (rows, M)
        context = nn.functional.embedding(codes + self.first, self.effects).sum(dim=1)  # (rows, M)
        return self.intercept + own + away @ self.others.T + context  # (rows, M)


class _TorchCoordinate(nn.Module):
    """A rising map of each logit: a table over an even grid, straight lines beyond it."""

    low: Tensor
    high: Tensor
    table: Tensor
    below: Tensor
    above: Tensor
    first: Tensor

    def __init__(self, coordinate: Coordinate) -> None:
        super().__init__()
        for name in ("low", "high", "table", "below", "above"):
            value = getattr(coordinate, name)
            self.register_buffer(name, torch.tensor(value, dtype=torch.float32))
        M, self.cells = coordinate.table.shape
        self.register_buffer("first", torch.arange(M) * self.cells)

    def forward(self, x: Tensor) -> Tensor:
        place = (x - self.low) / (self.high - self.low) * (self.cells - 1)  # (rows, M)
        cell = place.clamp(0, self.cells - 2).long()  # (rows, M)
        inside = place.clamp(0, self.cells - 1) - cell  # (rows, M)
        left = self.table.flatten()[cell + self.first]  # (rows, M)
        right = self.table.flatten()[cell + self.first + 1]  # (rows, M)
        below = self.below * (x - self.low).clamp(max=0)  # (rows, M)
        above = self.above * (x - self.high).clamp(min=0)  # (rows, M)
        result: Tensor = left + inside * (right - left) + below + above  # (rows, M)
        return result


def _spread(others: Tensor) -> Tensor:
    """Put each head's M − 1 coefficients of the other scores around a diagonal of zeros."""
    M = len(others)
    full = torch.zeros(M, M)
    full[~torch.eye(M, dtype=torch.bool)] = others.reshape(-1)
    return full
