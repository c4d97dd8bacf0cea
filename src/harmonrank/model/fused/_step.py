"""Step: the forward and the backward pass of a training step."""

__all__ = ["Step"]

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harmonrank.model.fused._backward import scatter, scatter_parts
from harmonrank.model.fused._forward import BLOCK, fuse_blocks, fuse_parts
from harmonrank.model.fused._places import check_shapes, code_rows, place_parts, place_rows
from harmonrank.model.fused._tables import Tables
from harmonrank.model.fused._weights import Weights

if TYPE_CHECKING:
    from harmonrank.model.network import Network

_LEAST_ROWS = 1024


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
        self._tables = Tables(network.config)
        M = network.config.objectives
        check_shapes(scores, context, M, len(self._tables.first) - M)
        self._codes = code_rows(scores, context, self._tables.sizes)
        self._room = _Room(self._tables, 0, 1)

    def forward(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the fused scores of some rows."""
        tables, config = self._tables, self._tables.config
        tables.fill(self.weights)
        if self._room.rows != len(index):
            self._room = _Room(tables, len(index), self._threads)
        room, fused = self._room, np.empty(len(index), np.float32)
        net = (
            tables.cells, tables.contexts, config.objectives, tables.width,
            config.self_attention, config.cross_attention, tables.bias,
        )  # fmt: skip
        if room.parts == 1:
            place_rows(self._codes, index, tables.first, room.place)
            fuse_blocks(room.place, *net, True, room.J, fused)
        else:
            place_parts(self._codes, index, tables.first, room.edges, room.place)
            fuse_parts(room.place, *net, room.edges, room.J, fused)
        return fused

    def backward(self, slope: NDArray[np.float32]) -> None:
        """Compute the gradient, given ∂L/∂s of the rows of the last `forward`."""
        room, M = self._room, self._tables.config.objectives
        if room.parts == 1:
            scatter(slope, room.place, room.J, M, room.d_cells[0], room.d_contexts[0])
        else:
            scatter_parts(slope, room.place, room.J, M, room.edges, room.d_cells, room.d_contexts)
        # Added in a fixed order, so that timing does not decide the last digit.
        cells, contexts = room.d_cells.sum(axis=0), room.d_contexts.sum(axis=0)
        total = float(slope.sum(dtype=np.float64))
        self._tables.back(cells, contexts, total, self.gradient)


class _Room:
    """Memory for a batch of so many rows, and where the blocks of each thread begin."""

    def __init__(self, tables: Tables, rows: int, threads: int) -> None:
        self.rows, blocks = rows, -(-rows // BLOCK)
        self.parts = max(1, min(threads, rows // _LEAST_ROWS))
        self.edges = blocks * np.arange(self.parts + 1) // self.parts
        fields, asked = tables.cells.shape[1] - 1, tables.contexts.shape[1]
        self.place = np.empty((blocks, len(tables.first), BLOCK), np.int32)
        derivatives = tables.config.objectives * fields + asked
        self.J = np.empty((blocks, derivatives, BLOCK), np.float32)
        self.d_cells = np.empty((self.parts, *tables.cells.shape))
        self.d_contexts = np.empty((self.parts, *tables.contexts.shape))
