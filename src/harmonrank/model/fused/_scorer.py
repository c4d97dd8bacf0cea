"""Scorer: a network compiled into tables and one kernel."""

__all__ = ["Scorer", "covers"]

import logging
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from harmonrank.model.config import NetworkConfig
from harmonrank.model.fused._block import BLOCK
from harmonrank.model.fused._codes import MOST_CODES, check_shapes, unknown_code
from harmonrank.model.fused._forward import fuse_parts
from harmonrank.model.fused._tables import Tables
from harmonrank.model.fused._weights import Weights
from harmonrank.together import edges_of, together

if TYPE_CHECKING:
    from harmonrank.model.network import Network

_BLOCKS = 16  # Some thousand rows; a request's are one part.
_NO_INDEX, _NO_CODES = np.empty(0, np.int64), np.empty((0, 0), np.uint16)
_NO_PLACES, _NO_SHARES = np.empty((0, 0, BLOCK), np.int32), np.empty((0, 0), np.float32)
_NO_SHARE = _NO_DERIVATIVES = np.empty((0, 0, BLOCK), np.float32)


def covers(config: NetworkConfig) -> bool:
    """Tell whether the kernels can train a network of this shape, and log once if not.

    A code has two bytes, so that only a table of very many rows is left to PyTorch. To score,
    no codes are kept, and the kernels serve every shape.

    >>> covers(NetworkConfig(objectives=5)), covers(NetworkConfig(objectives=5, buckets=70_000))
    (True, False)
    """
    if max(config.buckets or 0, *config.context_slots, 0) >= MOST_CODES:
        _say(f"With {MOST_CODES:,} buckets or context values a network is trained by PyTorch.")
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
        weights: Its parameters by name, and the knots of its buckets.

    >>> from harmonrank.model import Network
    >>> scorer = Scorer.of(Network(NetworkConfig(objectives=2)))
    >>> scorer(np.zeros((3, 2), np.float32), np.zeros((3, 0), np.int32)).shape
    (3,)
    """

    def __init__(self, config: NetworkConfig, weights: Mapping[str, NDArray[Any]]) -> None:
        self._tables = Tables(config, weights["scores.knots"])
        self._tables.fill(Weights(weights))

    @classmethod
    def of(cls, network: "Network") -> Self:
        """Return the scorer of a network with its present weights."""
        weights = {name: value.detach().numpy() for name, value in network.named_parameters()}
        return cls(network.config, {**weights, "scores.knots": network.scores.knots.numpy()})

    def __call__(
        self, scores: NDArray[np.float32], context: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Fuse (rows, objectives) scores given (rows, features) context codes."""
        # One type each, so that the kernels are compiled once.
        scores = np.ascontiguousarray(scores, np.float32)
        context = np.ascontiguousarray(context, np.int32)
        M = self._tables.config.objectives
        check_shapes(scores, context, M, len(self._tables.first) - M)
        tables, fused = self._tables, np.empty(len(scores), np.float32)
        edges = edges_of(-(-len(scores) // BLOCK), _BLOCKS)
        unknown = np.zeros(len(edges) - 1, np.int64)
        together(
            lambda claims, who: fuse_parts(
                claims, who, edges, _NO_INDEX, _NO_CODES, _NO_SHARES, scores, context,
                *tables.network, False, _NO_PLACES, _NO_SHARE, _NO_DERIVATIVES, fused, unknown,
            ),
            len(edges) - 1,
        )  # fmt: skip
        if unknown.any():
            raise unknown_code()
        return fused.astype(np.float64)
