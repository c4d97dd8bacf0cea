"""Tables: a network folded into rows that the kernels look up, and their gradients.

The arithmetic here is float64, and its cost does not depend on the number of rows. docs/kernels.md
derives it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.buckets import table_rows
from harmonrank.paper.config import NetworkConfig
from harmonrank.paper.fused._folding import Agnostic, Relation, WeightVector
from harmonrank.paper.fused._rows import Room
from harmonrank.support.errors import UsageError
from harmonrank.support.kernel import kernel
from harmonrank.support.simd import SINGLES

Matrix = NDArray[np.float64]

MOST_CODES = 1 << 16
_PIECE = 1 << 18


class Tables:
    """The table rows of score buckets and of context codes.

    Args:
        config: The network's size and switches.
        knots: Of its buckets, (objectives, knots).

    Attributes:
        width: Width d of a token, rounded up to an even number.
        smooth: Whether two rows are interpolated; without buckets these are a row of zeros and the
            vector that the score is multiplied by.
        knots: As given; 0 and 1 without buckets.
        inner: The knots that a score is compared with, filled up with ∞ to a power of two.
        first: Where each objective begins in `cells` and each context feature in `contexts`.
        sizes: How many rows each objective and each context feature has there.
        cells: One row per objective and bucket: x, y = Gᵀx, z = Vᵀx, and l or what it is made of.
        contexts: A constant row, then one row per code: its share of u.
            Both are followed by spare room, as kernels load eight numbers at a time.
        bias: Added to every fused score.
    """

    def __init__(self, config: NetworkConfig, knots: NDArray[np.float32]) -> None:
        M, slots = config.objectives, config.context_slots if config.personalised else ()
        self.config, self.buckets = config, config.buckets or 2
        self.smooth = config.interpolate or config.buckets is None
        none = np.tile(np.array([0, 1], np.float32), (M, 1))
        self.knots = none if config.buckets is None else np.ascontiguousarray(knots, np.float32)
        self.inner = _padded(self.knots[:, 1:-1] if self.smooth else self.knots)
        self.width = config.width + config.width % 2
        self.sizes = np.array([self.buckets] * M + list(slots))
        starts = np.cumsum([1, *slots])[:-1]
        self.first = np.r_[np.arange(M) * self.buckets, starts].astype(np.int64)
        listeners = 1 if config.cross_attention else M
        self._own = 2 * self.width + listeners  # x, y and z
        fields = self._own + (3 if self.smooth else 1)
        self._cells, self.cells = _with_room(M * self.buckets, fields)
        asked = self.width if config.cross_attention else 1
        self._contexts, self.contexts = _with_room(1 + sum(slots), asked)
        self.bias = np.float32(0)
        # Which feature a code belongs to, as a matrix of 0 and 1.
        self._of_feature = np.repeat(np.eye(len(slots)), slots, axis=0)  # (codes, features)

    @np.errstate(over="ignore")  # Weights that diverge are refused later, by their scores.
    def fill(self, weights: WeightVector) -> None:
        """Compute all rows from a network's weights, which must not change before `back`."""
        d, D = self.config.width, self.width
        self._weights = weights
        self._relation = Relation(weights, self.config)
        E = self._embedding()
        self._E = E.reshape(-1, d)
        self._agnostic = Agnostic(weights, self.config, E, smooth=self.smooth)
        # x, y and z are linear in the score table: K = [1 | G | V].
        K = np.zeros((d, self._own))
        K[:, :d], K[:, D : D + d], K[:, 2 * D :] = np.eye(d), self._relation.G, self._relation.V
        self.cells[:, : self._own] = self._E @ K
        self.cells[:, self._own :] = self._agnostic.columns
        self._K, U = K, self._relation.U
        if len(self._of_feature):
            self._P = self._of_feature * weights["context.table"]  # (codes, features)
            self.contexts[1:, : len(U)] = self._P @ U.T
        elif self.config.cross_attention:
            self.contexts[0, : len(U)] = U[:, 0]
        self.bias = np.float32(sum(weights[name][0] for name in self._biases))

    def back(
        self, d_cells: Matrix, d_contexts: Matrix, d_bias: float, gradient: WeightVector
    ) -> None:
        """Write the gradient of all weights, given those of the rows and the bias.

        The chain rule of the rows is eq. 12 of docs/kernels.md.
        """
        d, D = self.config.width, self.width
        table, M = gradient["scores.table"], self.config.objectives
        dE = np.empty_like(self._E) if self.config.buckets is None else table
        dK = np.zeros_like(self._K)
        _take_back(self._E, self._K, d_cells, dE, dK)
        self._agnostic.back(d_cells[:, self._own :], dE.reshape(M, -1, d), gradient)
        if self.config.buckets is None:
            table[...] = dE.reshape(M, 2, d)[:, 1]
        dU = self._back_contexts(d_contexts, gradient)
        self._relation.back(dK[:, D : D + d], dU, dK[:, 2 * D :], gradient)
        for name in self._biases:
            gradient[name][0] = d_bias

    def _back_contexts(self, d_contexts: Matrix, gradient: WeightVector) -> Matrix:
        # eq. 17 of docs/kernels.md
        U = self._relation.U
        d_rows = d_contexts[:, : len(U)]
        if len(self._of_feature):
            dP = (d_rows[1:] @ U) * self._of_feature
            gradient["context.table"][:, 0] = dP.sum(axis=1)
            return d_rows[1:].T @ self._P
        return d_rows[:1].T if self.config.cross_attention else np.zeros_like(U)

    def _embedding(self) -> Matrix:
        """Return the score table, (objectives, rows, width)."""
        M, d, table = self.config.objectives, self.config.width, self._weights["scores.table"]
        if self.config.buckets is None:
            return np.stack([np.zeros_like(table), table], axis=1)
        return table.reshape(M, -1, d)

    @property
    def knotted(self) -> tuple[Any, Any, Any]:
        """How many rows each objective and feature has, and the knots of the scores."""
        return self.sizes, self.knots.reshape(-1), self.inner.reshape(-1)

    @property
    def network(self) -> tuple[Any, Any, Any, int, int, int, int, bool, bool, bool, Any]:
        """The network as arguments of a kernel; arrays are flat."""
        c, (_, fields), (_, asked) = self.config, self.cells.shape, self.contexts.shape
        sizes = (c.objectives, fields, self.width, asked)
        switches = (c.self_attention, c.cross_attention, self.smooth)
        return (self.first, self._cells, self._contexts, *sizes, *switches, self.bias)

    def room(self) -> Room:
        """Return memory for one thread."""
        M = self.config.objectives
        return Room.of(M, len(self.first) - M, self.cells.shape[1], self.contexts.shape[1])

    @property
    def _biases(self) -> list[str]:
        names = {"relation_aware.output.bias": True, "gated.output.bias": self.config.gate}
        return [n for n, there in {**names, "linear.bias": self.config.linear}.items() if there]


def _with_room(rows: int, columns: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return a table of zeros with some numbers behind it: the flat whole, and the table."""
    whole = np.zeros(rows * columns + columns + SINGLES, np.float32)
    return whole, whole[: rows * columns].reshape(rows, columns)


def _padded(knots: NDArray[np.float32]) -> NDArray[np.float32]:
    """Pad each row with ∞, so that a binary search needs no test for the end."""
    width = 1 << int(knots.shape[1]).bit_length()
    padded = np.full((len(knots), width), np.inf, np.float32)
    padded[:, : knots.shape[1]] = knots
    return padded


@kernel
def _take_back(E: Any, K: Any, d_cells: Any, dE: Any, dK: Any) -> None:
    """Write dE = d_cells Kᵀ and add Eᵀ d_cells to dK; fields after z are not used."""
    for row in range(len(E)):
        for c in range(len(K)):
            total = 0.0
            for field in range(K.shape[1]):
                total += d_cells[row, field] * K[c, field]
                dK[c, field] += E[row, c] * d_cells[row, field]
            dE[row, c] = total


def code_rows(
    scores: NDArray[np.float32], context: NDArray[np.int32], tables: "Tables"
) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
    """Return (rows, objectives + features) codes, and the share of the next row of each score.

    The codes are the table rows of the scores (see `harmonrank.paper.buckets`), then those of the
    context. There are no shares where rows are not mixed.
    """
    M, sizes = scores.shape[1], tables.sizes
    features = len(sizes) - M
    codes = np.empty((len(scores), len(sizes)), np.uint16)
    shares = np.empty((len(scores) if tables.smooth else 0, M), np.float32)
    # In pieces, so that the intermediate integers take little memory.
    for start in range(0, len(scores), _PIECE):
        piece = slice(start, start + _PIECE)
        codes[piece, :M], share = table_rows(tables.knots, scores[piece], interpolate=tables.smooth)
        if tables.smooth:
            shares[piece] = share
        given = context[piece, :features]
        if ((given < 0) | (given >= sizes[M:])).any():
            raise unknown_code()
        codes[piece, M:] = given
    return codes, shares


def check_shapes(scores: NDArray[np.float32], context: NDArray[np.int32], M: int, C: int) -> None:
    """Refuse arrays whose end a kernel would read beyond."""
    if scores.ndim != 2 or scores.shape[1] != M:
        raise UsageError(f"`scores` must be (rows, {M}). Got {scores.shape}.")
    if context.ndim != 2 or len(context) != len(scores) or context.shape[1] < C:
        raise UsageError(f"`context` must be ({len(scores)}, {C}). Got {context.shape}.")


def unknown_code() -> UsageError:
    """Return the error for a context code that is not in the tables."""
    return UsageError("`context` holds a code that training did not have; use 0, the unknown.")
