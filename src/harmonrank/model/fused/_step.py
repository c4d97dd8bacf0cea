"""Step: the forward and the backward pass of a training step."""

__all__ = ["Step"]

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harmonrank.model.fused._backward import scatter
from harmonrank.model.fused._forward import BLOCK, fuse_blocks
from harmonrank.model.fused._places import check_shapes, code_rows, place_rows
from harmonrank.model.fused._tables import Tables
from harmonrank.model.fused._threads import in_parts, parts_of
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
        self._parts: list[_Part] = []

    def forward(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the fused scores of some rows."""
        self._tables.fill(self.weights)
        cut = parts_of(len(index), self._threads, BLOCK, _LEAST_ROWS)
        if [part.rows for part in self._parts] != cut:
            self._parts = [_Part(self._tables, rows) for rows in cut]
        fused = np.empty(len(index), np.float32)
        in_parts(lambda k: self._parts[k].forward(self._codes, index, fused), len(cut))
        return fused

    def backward(self, slope: NDArray[np.float32]) -> None:
        """Compute the gradient, given ∂L/∂s of the rows of the last `forward`."""
        in_parts(lambda k: self._parts[k].backward(slope), len(self._parts))
        # Added in a fixed order, so that timing does not decide the last digit.
        cells = sum((part.d_cells for part in self._parts[1:]), self._parts[0].d_cells)
        contexts = sum((part.d_contexts for part in self._parts[1:]), self._parts[0].d_contexts)
        total = float(slope.sum(dtype=np.float64))
        self._tables.back(cells, contexts, total, self.gradient)


class _Part:
    """The share of one thread: its rows and its own memory."""

    def __init__(self, tables: Tables, rows: slice) -> None:
        self.rows, self._tables = rows, tables
        blocks = -(-(rows.stop - rows.start) // BLOCK)
        fields, asked = tables.cells.shape[1] - 1, tables.contexts.shape[1]
        self._M = tables.config.objectives
        self._place = np.empty((blocks, len(tables.first), BLOCK), np.int32)
        self._J = np.empty((blocks, self._M * fields + asked, BLOCK), np.float32)
        self.d_cells = np.empty(tables.cells.shape)
        self.d_contexts = np.empty(tables.contexts.shape)

    def forward(
        self, codes: NDArray[np.uint16], index: NDArray[np.int64], fused: NDArray[np.float32]
    ) -> None:
        tables, config = self._tables, self._tables.config
        place_rows(codes, index[self.rows], tables.first, self._place)
        fuse_blocks(
            self._place, tables.cells, tables.contexts, self._M, tables.width,
            config.self_attention, config.cross_attention, tables.bias,
            True, self._J, fused[self.rows],
        )  # fmt: skip

    def backward(self, slope: NDArray[np.float32]) -> None:
        scatter(slope[self.rows], self._place, self._J, self._M, self.d_cells, self.d_contexts)
