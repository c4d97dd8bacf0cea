"""Scorer: a network compiled into tables and one kernel, eq. 4 and eq. 5 of docs/kernels.md.

Rows are scored sixteen at a time, filled up at the end. So every row passes through the same
instructions, and its score is the same to the last bit whatever other rows are scored.
"""

import logging
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.config import NetworkConfig
from harmonrank.paper.fused._folding import WeightVector
from harmonrank.paper.fused._rows import load_rows, place_scores
from harmonrank.paper.fused._tables import MOST_CODES, Tables, check_shapes, unknown_code
from harmonrank.support.kernel import simd_function, simd_kernel
from harmonrank.support.parallel import each_part
from harmonrank.support.simd import ROWS, SINGLES, put_simd, row_simd
from harmonrank.support.simd_maths import exponential, larger, of_all, sigmoid

if TYPE_CHECKING:
    from harmonrank.paper.network import Network

Array = NDArray[Any]

_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(-np.inf)

_PART_ROWS = 4096  # A request's are one part.
_FILLED = 2 * ROWS


@simd_function
def fuse_rows(
    M: int, F: int, d: int, attend: bool, ask: bool, smooth: bool, bias: Any, cell: Array, u: Array,
    A: Array, own: Array, s: Array,
) -> None:  # fmt: skip
    """Fuse: s = bias + Σ_m l_m + s1 with s1 = Σ_i p_i o_i."""
    total = of_all(bias)
    if not ask:
        total = total + row_simd(u, 0)
    for m in range(M):
        last = (m * F + F - 1) * ROWS
        if smooth:  # l = g κ + t with the gate g = σ(q)
            g = sigmoid(row_simd(cell, last - 2 * ROWS))
            put_simd(own, (4 * M + m) * ROWS, g)
            total = total + g * row_simd(cell, last - ROWS)
        total = total + row_simd(cell, last)
        h = of_all(_ZERO)  # h_m = u · x_m; zero if the context does not ask
        if ask:
            for f in range(d):
                h = h + row_simd(u, f * ROWS) * row_simd(cell, (m * F + f) * ROWS)
        put_simd(own, m * ROWS, h)
    for i in range(M):
        _hear(i, 2 * d if ask else 2 * d + i, M, F, d, attend, cell, A, own)
    voices = _voices(M, ask, own)
    put_simd(s, 0, total + voices)
    put_simd(s, ROWS, voices)


@simd_function
def _hear(
    i: int, z: int, M: int, F: int, d: int, attend: bool, cell: Array, A: Array, own: Array
) -> None:
    """c_i = Σ_j A_ij h_j and o_i = Σ_j A_ij z_j, A being eq. 1 of docs/kernels.md."""
    top = of_all(_LEAST)
    for j in range(M if attend else 0):
        a = of_all(_ZERO)
        for f in range(d):
            a = a + row_simd(cell, (i * F + d + f) * ROWS) * row_simd(cell, (j * F + f) * ROWS)
        put_simd(A, (i * M + j) * ROWS, a)
        top = larger(a, top)
    total, c, o = of_all(_ZERO), of_all(_ZERO), of_all(_ZERO)
    for j in range(M):
        # Without self-attention an objective listens to itself alone.
        e = of_all(_ONE if i == j else _ZERO)
        if attend:
            e = exponential(row_simd(A, (i * M + j) * ROWS) - top)
        put_simd(A, (i * M + j) * ROWS, e)
        total = total + e
        c = c + e * row_simd(own, j * ROWS)
        o = o + e * row_simd(cell, (j * F + z) * ROWS)
    inverse = of_all(_ONE) / total
    put_simd(own, (M + i) * ROWS, c * inverse)
    put_simd(own, (2 * M + i) * ROWS, o * inverse)
    put_simd(own, (5 * M + i) * ROWS, inverse)


@simd_function
def _voices(M: int, ask: bool, own: Array) -> Any:
    """Return Σ_i p_i o_i with p = softmax(c); without cross-attention every p_i is 1."""
    top, total, voices = of_all(_LEAST), of_all(_ZERO), of_all(_ZERO)
    for i in range(M):
        top = larger(row_simd(own, (M + i) * ROWS), top)
    for i in range(M):
        p = exponential(row_simd(own, (M + i) * ROWS) - top) if ask else of_all(_ONE)
        put_simd(own, (3 * M + i) * ROWS, p)
        total = total + p
        voices = voices + p * row_simd(own, (2 * M + i) * ROWS)
    if not ask:
        return voices
    inverse = of_all(_ONE) / total
    for i in range(M):
        put_simd(own, (3 * M + i) * ROWS, row_simd(own, (3 * M + i) * ROWS) * inverse)
    return voices * inverse


@simd_kernel
def score_rows(
    begin: int, end: int, rows: Any, fused: Array, strange: Array, knotted: Any, network: Any,
    room: Any,
) -> None:  # fmt: skip
    """Write the fused scores of some rows, a multiple of sixteen.

    Some rows must follow the last one, as eight numbers are read at a time.

    Args:
        begin: The first row.
        end: After the last one.
        rows: Scores and context codes, flat, and how many columns the context has.
        fused: Filled with scores.
        strange: Set to non-zero where a code is not in the tables.
        knotted: `Tables.knotted`.
        network: `Tables.network`.
        room: The fields of a `Room`.
    """
    first, cells, contexts, M, F, d, W, attend, ask, smooth, bias = network
    place, share, cell, u, A, own, s, turned = room
    for start in range(begin, end, ROWS):
        place_scores(start, rows, knotted, M, first, smooth, place, share, strange)
        load_rows(place, share, cells, contexts, M, len(first) - M, F, W, smooth, cell, u, turned)
        fuse_rows(M, F, d, attend, ask, smooth, bias, cell, u, A, own, s)
        put_simd(fused, start, row_simd(s, 0))


def covers(config: NetworkConfig) -> bool:
    """Tell whether the kernels can train a network of this shape, and log once if not.

    A code has two bytes, so only networks with very large tables are trained by PyTorch. Scoring
    keeps no codes, so there the kernels cover every network.

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
    """Scores rows as the network does, with its weights at the time of construction.

    The result of a row depends on that row alone. PyTorch is not needed.

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
        self._tables.fill(WeightVector(weights))
        self._network = self._tables.knotted, self._tables.network
        self._rooms = [self._tables.room()]

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
        whole = scores, context, fused
        parts = max(1, -(-cut // _PART_ROWS))
        strange = np.zeros((parts, ROWS), np.int32)

        def work(part: int) -> None:
            begin, end = part * _PART_ROWS, min((part + 1) * _PART_ROWS, cut)
            self._fuse(begin, end, whole, strange[part])
            if end == cut and cut < len(scores):
                last = np.empty(_FILLED, np.float32)
                rest = _filled(scores[cut:]), _filled(context[cut:]), last
                self._fuse(0, _FILLED, rest, strange[part])
                fused[cut:] = last[: len(scores) - cut]

        each_part(work, parts)
        if strange.any():
            raise unknown_code()
        return fused.astype(np.float64)

    def _fuse(
        self, begin: int, end: int, whole: tuple[Array, Array, Array], strange: Array
    ) -> None:
        scores, context, fused = whole
        rows = scores.reshape(-1), context.reshape(-1), context.shape[1]
        try:
            room = self._rooms.pop()
        except IndexError:  # All are in use by other threads.
            room = self._tables.room()
        # Numba knows the type of a plain tuple at once.
        score_rows(begin, end, rows, fused, strange, *self._network, tuple(room))
        self._rooms.append(room)


def _cut(rows: int) -> int:
    """Return how many rows are scored in place, a multiple of sixteen.

    Eight numbers are read at a time, so some rows must follow the last one.
    """
    return max(0, rows - SINGLES) // ROWS * ROWS


def _filled(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the last rows, filled up with rows of zeros."""
    filled = np.zeros((_FILLED + SINGLES, rows.shape[1]), rows.dtype)
    filled[: len(rows)] = rows
    return filled
