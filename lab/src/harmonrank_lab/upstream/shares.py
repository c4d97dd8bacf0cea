"""Shares: what each worker of a team computes of a batch, and how all come to have all of it.

A batch is cut into the same pieces however many workers there are, and each worker takes some of
them. What is gathered are the slopes of every piece, by experts, gates and towers and by the pooled
vectors of its rows; each worker then adds them up in the order of the pieces and takes the step. So
weights are the same on all workers, and those of one worker, to the last bit. The slopes of pooled
vectors stand for those of the embedding rows: one per side of a log row, not one per field.
"""

__all__ = ["scores_of_all", "slopes_of_all"]

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import prod

import numpy as np
import torch
from torch import Tensor

from harmonrank_lab.upstream.embedding import Rows
from harmonrank_lab.upstream.network import SCORED_ROWS, PredictorNetwork
from harmonrank_lab.upstream.team import Team

Piece = tuple[Rows, int]
Slopes = tuple[float, list[Tensor]]


def slopes_of_all(
    team: Team,
    pieces: Sequence[Piece],
    find: Callable[[Sequence[Piece]], list[Slopes]],
    network: PredictorNetwork,
) -> list[Slopes]:
    """Return the loss and the slopes of every piece, each found by one worker.

    Args:
        team: Who works on the batch.
        pieces: All of it: rows, and the seed of what dropout leaves out.
        find: Returns the slopes of some pieces: by all parameters above the embedding, by pooled
            vectors and by first-order logits.
        network: Which says how large these are.
    """
    if team.size == 1:
        return find(pieces)
    low, high = list(pairwise(_cuts(len(pieces), team.size)))[team.rank]
    mine = [_packed(found) for found in find(pieces[low:high])]
    whole = np.concatenate(team.gathered(np.concatenate([np.empty(0, np.float32), *mine])))
    shapes = [_shapes(network, len(rows)) for rows, _ in pieces]
    ends = accumulate((2 + sum(map(prod, each)) for each in shapes), initial=0)
    return [
        _unpacked(whole[a:b], each) for (a, b), each in zip(pairwise(ends), shapes, strict=True)
    ]


def scores_of_all(team: Team, network: PredictorNetwork, rows: Rows) -> np.ndarray:
    """Return what `network.score` does, each worker scoring a part of the rows."""
    if team.size == 1:
        return network.score(rows)
    # Scored in the same pieces as by one worker: products of other shapes may round otherwise.
    count = -(-len(rows) // SCORED_ROWS)
    low, high = list(pairwise(_cuts(count, team.size)))[team.rank]
    mine = network.score(rows.take(slice(low * SCORED_ROWS, high * SCORED_ROWS)))
    objectives = rows.labels.shape[1]
    return np.concatenate(team.gathered(mine.reshape(-1, objectives)))


def _cuts(count: int, parts: int) -> list[int]:
    """Cut so many pieces into neighbouring parts that differ by one at the most.

    >>> _cuts(5, 2)
    [0, 2, 5]
    """
    return [count * k // parts for k in range(parts + 1)]


def _shapes(network: PredictorNetwork, rows: int) -> list[tuple[int, ...]]:
    """Return the shapes of the slopes of a piece."""
    width, total = network.embedding.width, network.embedding.table.shape[1]
    own = (rows, network.embedding.sides * width), (rows, total - width)
    return [*(tuple(p.shape) for p in network.top.parameters()), *own]


def _packed(found: Slopes) -> np.ndarray:
    """Return one vector; the loss, a double, takes two places."""
    loss, slopes = found
    first = np.array([loss]).view(np.float32)
    return np.concatenate([first, *(slope.detach().numpy().ravel() for slope in slopes)])


def _unpacked(vector: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> Slopes:
    loss = float(vector[:2].copy().view(np.float64)[0])
    ends = accumulate(map(prod, shapes), initial=2)
    slopes = [
        torch.from_numpy(vector[a:b].reshape(shape))
        for (a, b), shape in zip(pairwise(ends), shapes, strict=True)
    ]
    return loss, slopes
