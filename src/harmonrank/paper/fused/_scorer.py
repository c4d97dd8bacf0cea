"""Scorer: a network compiled into tables and one kernel."""

__all__ = ["Scorer", "covers"]

import logging
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.config import NetworkConfig
from harmonrank.paper.fused._codes import MOST_CODES, check_shapes, unknown_code
from harmonrank.paper.fused._forward import score_rows
from harmonrank.paper.fused._tables import Tables
from harmonrank.paper.fused._weights import NetworkWeights
from harmonrank.support.parallel import each_part
from harmonrank.support.simd import ROWS, SINGLES

if TYPE_CHECKING:
    from harmonrank.paper.network import Network

_PART_ROWS = 4096  # A request's are one part.
_FILLED = 2 * ROWS


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

    >>> from harmonrank.paper import Network
    >>> scorer = Scorer.of(Network(NetworkConfig(objectives=2)))
    >>> scorer(np.zeros((3, 2), np.float32), np.zeros((3, 0), np.int32)).shape
    (3,)
    """

    def __init__(self, config: NetworkConfig, weights: Mapping[str, NDArray[Any]]) -> None:
        self._tables = Tables(config, weights["scores.knots"])
        self._tables.fill(NetworkWeights(weights))
        tables = self._tables
        self._network = (tables.first, *tables.knotted, *tables.network)
        self._rooms = [tables.room()]

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
        fused, cut = np.empty(len(scores), np.float32), _cut(len(scores))
        parts = max(1, -(-cut // _PART_ROWS))
        strange = np.zeros((parts, ROWS), np.int32)

        def work(part: int) -> None:
            begin, end = part * _PART_ROWS, min((part + 1) * _PART_ROWS, cut)
            self._fuse(begin, end, scores, context, fused, strange[part])
            if end == cut and cut < len(scores):
                rest, last = _filled(scores[cut:]), np.empty(_FILLED, np.float32)
                self._fuse(0, _FILLED, rest, _filled(context[cut:]), last, strange[part])
                fused[cut:] = last[: len(scores) - cut]

        each_part(work, parts)
        if strange.any():
            raise unknown_code()
        return fused.astype(np.float64)

    def _fuse(
        self,
        begin: int,
        end: int,
        scores: NDArray[np.float32],
        context: NDArray[np.int32],
        fused: NDArray[np.float32],
        strange: NDArray[np.int32],
    ) -> None:
        rows = scores.reshape(-1), context.reshape(-1), context.shape[1], fused, strange
        try:
            room = self._rooms.pop()
        except IndexError:  # All are in use by other threads.
            room = self._tables.room()
        score: Any = score_rows
        score(begin, end, *rows, *self._network, *room)
        self._rooms.append(room)


def _cut(rows: int) -> int:
    """Return how many rows are scored where they lie, a multiple of sixteen.

    Eight numbers are read at a time, so that some rows must follow.
    """
    return max(0, rows - SINGLES) // ROWS * ROWS


def _filled(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the last rows with others behind them, which are as good as any."""
    filled = np.zeros((_FILLED + SINGLES, rows.shape[1]), rows.dtype)
    filled[: len(rows)] = rows
    return filled
