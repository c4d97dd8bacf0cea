"""Scorer: a network compiled into tables and one kernel."""

__all__ = ["Scorer", "covers"]

import logging
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from harmonrank.model.config import NetworkConfig
from harmonrank.model.fused._forward import BLOCK, fuse_blocks
from harmonrank.model.fused._places import MOST_CODES, check_shapes, place_scores, unknown_code
from harmonrank.model.fused._tables import Tables
from harmonrank.model.fused._threads import in_parts, parts_of, threads
from harmonrank.model.fused._weights import Weights

if TYPE_CHECKING:
    from harmonrank.model.network import Network

_LEAST_ROWS = 8192  # Below this, waking another thread costs more than it saves.
_PIECE = 64 * BLOCK
_NO_DERIVATIVES = np.empty((0, 0, BLOCK), np.float32)


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

    Each row's result depends on that row alone, whatever else is scored with it. PyTorch is not
    needed.

    Args:
        config: The network's size and switches.
        weights: Its parameters by name.

    >>> from harmonrank.model import Network
    >>> scorer = Scorer.of(Network(NetworkConfig(objectives=2)))
    >>> scorer(np.zeros((3, 2), np.float32), np.zeros((3, 0), np.int32)).shape
    (3,)
    """

    def __init__(self, config: NetworkConfig, weights: Mapping[str, NDArray[Any]]) -> None:
        self._tables = Tables(config)
        self._tables.fill(Weights(weights))

    @classmethod
    def of(cls, network: "Network") -> Self:
        """Return the scorer of a network with its present weights."""
        parameters = network.named_parameters()
        return cls(network.config, {name: value.detach().numpy() for name, value in parameters})

    def __call__(
        self, scores: NDArray[np.float32], context: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Fuse (rows, objectives) scores given (rows, features) context codes."""
        # One type each, so that the kernels are compiled once.
        scores = np.ascontiguousarray(scores, np.float32)
        context = np.ascontiguousarray(context, np.int32)
        M = self._tables.config.objectives
        check_shapes(scores, context, M, len(self._tables.first) - M)
        fused = np.empty(len(scores), np.float32)
        parts = parts_of(len(scores), threads(), BLOCK, _LEAST_ROWS)

        def score(part: int) -> None:
            rows = parts[part]
            self._score(scores[rows], context[rows], fused[rows])

        in_parts(score, len(parts))
        return fused.astype(np.float64)

    def _score(
        self, scores: NDArray[np.float32], context: NDArray[np.int32], fused: NDArray[np.float32]
    ) -> None:
        tables, config = self._tables, self._tables.config
        blocks = -(-min(len(scores), _PIECE) // BLOCK)
        place = np.empty((blocks, len(tables.first), BLOCK), np.int32)
        # A piece at a time, so that the places stay in cache.
        for start in range(0, len(scores), _PIECE):
            rows = slice(start, start + _PIECE)
            if place_scores(scores[rows], context[rows], tables.first, tables.sizes, place):
                raise unknown_code()
            fuse_blocks(
                place, tables.cells, tables.contexts, config.objectives, tables.width,
                config.self_attention, config.cross_attention, tables.bias,
                False, _NO_DERIVATIVES, fused[rows],
            )  # fmt: skip
