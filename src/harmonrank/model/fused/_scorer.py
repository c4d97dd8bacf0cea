"""Scorer: a network compiled into tables and one kernel."""

__all__ = ["Scorer", "covers"]

import numpy as np
import torch
from numpy.typing import NDArray

from harmonrank.model.fused._forward import BLOCK, fuse_scores
from harmonrank.model.fused._tables import Tables
from harmonrank.model.fused._threads import in_parts, parts_of
from harmonrank.model.fused._weights import Weights
from harmonrank.model.network import Network, NetworkConfig

_LEAST_ROWS = 8192  # Below this, waking another thread costs more than it saves.
_MOST_CODES = 1 << 16


def covers(config: NetworkConfig) -> bool:
    """Tell whether the kernels can stand in for a network of this shape.

    They look up buckets, so a network without any is left to PyTorch.
    """
    if config.buckets is None:
        return False
    return max(config.buckets, *config.context_slots, 0) < _MOST_CODES


class Scorer:
    """Scores rows as the network does, from its weights at the time of construction.

    Each row's result depends on that row alone, whatever else is scored with it.

    >>> network = Network(NetworkConfig(objectives=2))
    >>> scorer = Scorer(network)
    >>> scorer(np.zeros((3, 2), np.float32), np.zeros((3, 0), np.int32)).shape
    (3,)
    """

    def __init__(self, network: Network) -> None:
        weights = Weights(network)
        weights.read(network)
        self._tables = Tables(network.config)
        self._tables.fill(weights)

    def __call__(
        self, scores: NDArray[np.float32], context: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Fuse (rows, objectives) scores given (rows, features) context codes."""
        tables, config = self._tables, self._tables.config
        fused = np.empty(len(scores))
        parts = parts_of(len(scores), torch.get_num_threads(), BLOCK, _LEAST_ROWS)

        def score(part: int) -> None:
            rows = parts[part]
            fuse_scores(
                scores[rows], context[rows], tables.buckets, tables.first, tables.cells,
                tables.contexts, tables.width, config.self_attention, config.cross_attention,
                tables.bias, fused[rows],
            )  # fmt: skip

        in_parts(score, len(parts))
        return fused
