"""Scorer: a network compiled into tables and one kernel."""

__all__ = ["Scorer", "covers"]

import logging
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from harmonrank.model.fused._coded import MOST_CODES, check_shapes, unknown_code
from harmonrank.model.fused._forward import BLOCK, fuse_scores
from harmonrank.model.fused._tables import Tables
from harmonrank.model.fused._threads import in_parts, parts_of
from harmonrank.model.fused._weights import Weights
from harmonrank.model.network import Network, NetworkConfig

_LEAST_ROWS = 8192  # Below this, waking another thread costs more than it saves.


def covers(config: NetworkConfig) -> bool:
    """Tell whether the kernels can stand in for a network of this shape, and log once if not.

    They look up buckets, so a network without any is left to PyTorch.

    >>> covers(NetworkConfig(objectives=5)), covers(NetworkConfig(objectives=5, buckets=None))
    (True, False)
    """
    if config.buckets is None:
        _say("Without buckets a network runs on PyTorch; the fused kernels need them.")
        return False
    if max(config.buckets, *config.context_slots, 0) >= MOST_CODES:
        _say(f"With {MOST_CODES:,} buckets or context values a network runs on PyTorch.")
        return False
    return True


@cache
def _say(message: str) -> None:
    logging.getLogger("harmonrank").info(message)


class Scorer:
    """Scores rows as the network does, from its weights at the time of construction.

    Each row's result depends on that row alone, whatever else is scored with it.

    Attributes:
        network: The network it stands for.

    >>> network = Network(NetworkConfig(objectives=2))
    >>> scorer = Scorer(network)
    >>> scorer(np.zeros((3, 2), np.float32), np.zeros((3, 0), np.int32)).shape
    (3,)
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        weights = Weights(network)
        weights.read(network)
        self._tables = Tables(network.config)
        self._tables.fill(weights)

    def __call__(
        self, scores: NDArray[np.float32], context: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Fuse (rows, objectives) scores given (rows, features) context codes."""
        tables, config = self._tables, self._tables.config
        # One type each, so that the kernel is compiled once.
        scores = np.ascontiguousarray(scores, np.float32)
        context = np.ascontiguousarray(context, np.int32)
        M = config.objectives
        check_shapes(scores, context, M, len(tables.first) - M)
        fused = np.empty(len(scores))
        parts = parts_of(len(scores), torch.get_num_threads(), BLOCK, _LEAST_ROWS)
        unknown = [0] * len(parts)

        def score(part: int) -> None:
            rows = parts[part]
            unknown[part] = fuse_scores(
                scores[rows], context[rows], tables.first, tables.sizes, tables.cells,
                tables.contexts, tables.width, config.self_attention, config.cross_attention,
                tables.bias, fused[rows],
            )  # fmt: skip

        in_parts(score, len(parts))
        if any(unknown):
            raise unknown_code()
        return fused
