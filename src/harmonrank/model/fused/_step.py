"""Step: the forward and the backward pass of a training step."""

__all__ = ["Step"]

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harmonrank.model.fused._backward import scatter_parts
from harmonrank.model.fused._block import BLOCK
from harmonrank.model.fused._codes import check_shapes, code_rows
from harmonrank.model.fused._forward import fuse_parts
from harmonrank.model.fused._tables import Tables
from harmonrank.model.fused._weights import Weights
from harmonrank.together import edges_of, together

if TYPE_CHECKING:
    from harmonrank.model.network import Network

_BLOCKS = 8  # A thousand rows: a tenth of a millisecond.
_NO_SCORES, _NO_CONTEXT = np.empty((0, 0), np.float32), np.empty((0, 0), np.int32)
_NO_COUNTS = np.empty(0, np.int64)


class Step:
    """Fuses batches of fixed rows and turns ∂L/∂s into the gradient of every weight.

    Args:
        network: Gives the shape; its weights are read once, into `weights`.
        scores: (rows, objectives).
        context: (rows, features) codes.
        threads: How many work at once; the last digits of a gradient depend on it.

    Attributes:
        weights: To be changed between steps.
        gradient: Of the last `backward`, laid out like the weights.
    """

    def __init__(
        self,
        network: "Network",
        scores: NDArray[np.float32],
        context: NDArray[np.int32],
        threads: int = 1,
    ) -> None:
        self._threads = threads
        self.weights, self.gradient = Weights.of(network), Weights.of(network)
        self.gradient.vector[:] = 0  # A weight that a switch leaves out has none.
        self._tables = Tables(network.config, network.scores.knots.numpy())
        M = network.config.objectives
        check_shapes(scores, context, M, len(self._tables.first) - M)
        self._codes, self._shares = code_rows(scores, context, self._tables)
        self._room = _Room(self._tables, 0, 1)

    def forward(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the fused scores of some rows."""
        tables = self._tables
        tables.fill(self.weights)
        if self._room.rows != len(index):
            self._room = _Room(tables, len(index), self._threads)
        room, fused = self._room, np.empty(len(index), np.float32)
        together(
            lambda claims, who: fuse_parts(
                claims, who, room.small, index, self._codes, self._shares, _NO_SCORES, _NO_CONTEXT,
                *tables.network, True, room.place, room.share, room.J, fused, _NO_COUNTS,
            ),
            len(room.small) - 1,
            self._threads,
        )  # fmt: skip
        return fused

    def backward(self, slope: NDArray[np.float32]) -> None:
        """Compute the gradient, given ∂L/∂s of the rows of the last `forward`."""
        room, M = self._room, self._tables.config.objectives
        together(
            lambda claims, who: scatter_parts(
                claims, who, room.large, slope, room.place, room.share, room.J, M, room.d_cells,
                room.d_contexts,
            ),
            len(room.large) - 1,
            self._threads,
        )  # fmt: skip
        # Added in a fixed order, so that timing does not decide the last digit.
        cells, contexts = room.d_cells.sum(axis=0), room.d_contexts.sum(axis=0)
        total = float(slope.sum(dtype=np.float64))
        self._tables.back(cells, contexts, total, self.gradient)


class _Room:
    """Memory for a batch of so many rows, and where the parts of both passes begin, in blocks."""

    def __init__(self, tables: Tables, rows: int, threads: int) -> None:
        self.rows, blocks = rows, -(-rows // BLOCK)
        self.small = edges_of(blocks, _BLOCKS)
        # Sums cost as much as their tables are large, so there are no more than threads.
        self.large = edges_of(blocks, max(_BLOCKS, -(-blocks // threads)))
        parts = max(1, len(self.large) - 1)
        fields, asked = tables.cells.shape[1] - 1, tables.contexts.shape[1]
        self.place = np.empty((blocks, len(tables.first), BLOCK), np.int32)
        mixed = blocks if tables.smooth else 0
        self.share = np.empty((mixed, tables.config.objectives, BLOCK), np.float32)
        derivatives = tables.config.objectives * fields + asked
        self.J = np.empty((blocks, derivatives, BLOCK), np.float32)
        self.d_cells = np.zeros((parts, *tables.cells.shape))
        self.d_contexts = np.zeros((parts, *tables.contexts.shape))
