"""Soft ranks, forward and backward: how fast, and how far from exact."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harmonrank import soft_rank
from harmonrank.metrics import argsort
from harmonrank_lab.bench._peers import peer
from harmonrank_lab.bench._result import Accuracy, Case, Size, Timing, Work, measure

_TYPES = {"float32": torch.float32, "float64": torch.float64}
_STRENGTHS = (1.0, 3.0, 10.0)


def cases(size: Size) -> Iterator[Case]:
    """Soft ranks and the sort beneath at each number of rows, then errors at the largest."""
    for rows in size.rank_rows:
        for kind, dtype in _TYPES.items():
            for strength in _STRENGTHS:
                speed = partial(_speed, rows, dtype, strength, size.seconds)
                yield Case(f"soft_rank {kind} strength {strength:g}", speed)
            yield Case(f"argsort {kind}", partial(_sort, rows, dtype, size.seconds))
    for kind, dtype in _TYPES.items():
        for strength in (1.0, 10.0):
            name = f"error {kind} strength {strength:g}"
            yield Case(name, partial(_error, name, max(size.rank_rows), dtype, strength))


def _draw(rows: int, dtype: torch.dtype, count: int) -> Tensor:
    return torch.randn(count, rows, dtype=dtype, generator=torch.Generator().manual_seed(0))


def _speed(rows: int, dtype: torch.dtype, strength: float, seconds: float) -> Timing:
    scores, upstream = _draw(rows, dtype, 2)
    work = {"ours": both_ways(lambda s: soft_rank(s, strength=strength), scores, upstream)}
    torchsort = peer("torchsort")
    if torchsort is not None:
        # The same projection, as the scores have unit spread.
        theirs = partial(torchsort.soft_rank, regularization_strength=strength / rows)
        work["torchsort"] = both_ways(theirs, scores[None], upstream[None])
    return measure(rows, work, seconds)


def both_ways(operator: Callable[[Tensor], Any], scores: Tensor, upstream: Tensor) -> Work:
    scores = scores.clone().requires_grad_()

    def run() -> None:
        scores.grad = None
        operator(scores).backward(upstream)

    return run


def _sort(rows: int, dtype: torch.dtype, seconds: float) -> Timing:
    values = _draw(rows, dtype, 1)[0].numpy()
    work: dict[str, Work] = {"ours": lambda: argsort(values)}
    work["numpy stable"] = lambda: np.argsort(values, kind="stable")
    work["numpy unstable"] = lambda: np.argsort(values)
    return measure(rows, work, seconds / 3)


def _error(name: str, rows: int, dtype: torch.dtype, strength: float) -> Accuracy:
    """Compare with the plain strength that both sides understand."""
    scores, epsilon = _draw(rows, dtype, 1)[0], strength / rows
    truth = _exact(scores.numpy(), epsilon)

    def error(ranks: Tensor) -> float:
        return float(np.abs(ranks.numpy() - truth).max())

    peers, torchsort = {}, peer("torchsort")
    if torchsort is not None:
        ranks = torchsort.soft_rank(scores[None], regularization_strength=epsilon)[0]
        peers["torchsort"] = error(ranks)
    ours = error(soft_rank(scores, strength=epsilon, scale="none"))
    rounded = error(torch.from_numpy(truth.astype(scores.numpy().dtype)))
    return Accuracy(name, rows, ours, rounded, peers)


def _exact(scores: np.ndarray, strength: float) -> np.ndarray:
    """Pool adjacent violators in extended precision, by plain scores and plain strength."""
    order = np.argsort(scores, kind="stable")
    z = scores[order].astype(np.longdouble) / np.longdouble(strength)
    means: list[np.longdouble] = []
    sizes: list[int] = []
    for value in z - np.arange(1, len(z) + 1):
        mean, size = value, 1
        while means and means[-1] >= mean:
            before, count = means.pop(), sizes.pop()
            mean, size = (mean * size + before * count) / (size + count), size + count
        means.append(mean)
        sizes.append(size)
    ranks = np.empty(len(z), np.longdouble)
    ranks[order] = z - np.repeat(np.array(means), sizes)
    return ranks
