"""FusedStep: the forward and the backward pass of a training step."""

__all__ = ["FusedStep"]

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.fused._backward import scatter_parts
from harmonrank.paper.fused._codes import check_shapes, code_rows
from harmonrank.paper.fused._forward import step_parts
from harmonrank.paper.fused._room import aligned
from harmonrank.paper.fused._tables import Tables
from harmonrank.paper.fused._weights import NetworkWeights
from harmonrank.support.parallel import edges_of, together
from harmonrank.support.simd import ROWS, SINGLES

if TYPE_CHECKING:
    from harmonrank.paper.network import Network

_PART_ROWS = 1024  # Some part of a tenth of a millisecond.


class FusedStep:
    """Fuses batches of some rows and turns ∂L/∂s into the gradient of every weight.

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
        self.weights, self.gradient = NetworkWeights.of(network), NetworkWeights.of(network)
        self.gradient.vector[:] = 0  # A weight that a switch leaves out has none.
        self._tables = Tables(network.config, network.scores.knots.numpy())
        self._batch = _Batch(self._tables, np.empty(0, np.int64), 1)
        self.use(scores, context)

    def use(self, scores: NDArray[np.float32], context: NDArray[np.int32]) -> None:
        """Take other rows in place of those before."""
        M = self._tables.config.objectives
        check_shapes(scores, context, M, len(self._tables.first) - M)
        codes, shares = code_rows(scores, context, self._tables)
        # Eight numbers are read at a time.
        self._codes, self._shares = (
            np.append(a, np.zeros(SINGLES, a.dtype)) for a in (codes, shares)
        )

    def forward(self, index: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the fused scores of some rows."""
        tables = self._tables
        tables.fill(self.weights)
        if len(self._batch.index) != len(index):
            self._batch = _Batch(tables, index, self._threads)
        self._batch.index, batch = index, self._batch
        fused = np.empty(-(-len(index) // ROWS) * ROWS, np.float32)
        given = (batch.small, index, self._codes, self._shares)
        step: Any = step_parts
        together(
            lambda claims, who: step(
                claims, who, *given, batch.rows_last[who], batch.J, fused, tables.first,
                *tables.network, *batch.rooms[who],
            ),
            len(batch.small) - 1,
            self._threads,
        )  # fmt: skip
        return fused[: len(index)]

    def backward(self, slope: NDArray[np.float32]) -> None:
        """Compute the gradient, given ∂L/∂s of the rows of the last `forward`."""
        tables, batch = self._tables, self._batch
        batch.d_cells[:] = batch.d_contexts[:] = 0
        given = (batch.large, batch.index, self._codes, self._shares, slope, batch.J)
        together(
            lambda claims, who: scatter_parts(
                claims, who, *given, tables.config.objectives, tables.first, tables.smooth,
                batch.d_cells, batch.d_contexts, *batch.widths,
            ),
            len(batch.large) - 1,
            self._threads,
        )  # fmt: skip
        wide, asked = batch.widths
        cells = _added(batch.d_cells, tables.cells, wide)
        contexts = _added(batch.d_contexts, tables.contexts, asked)
        total = float(slope.sum(dtype=np.float64))
        tables.back(cells, contexts, total, self.gradient)


class _Batch:
    """Memory for a batch of so many rows, and where the parts of both passes begin."""

    def __init__(self, tables: Tables, index: NDArray[np.int64], threads: int) -> None:
        self.index, rows = index, len(index)
        self.small = edges_of(rows, _PART_ROWS)
        # Sums cost as much as their tables are large, so there are no more than threads.
        self.large = edges_of(rows, max(_PART_ROWS, -(-rows // threads)))
        # Lanes are written and added by eight, so that rows are filled up to a multiple of it.
        self.widths = tuple(
            -(-table.shape[1] // SINGLES) * SINGLES for table in (tables.cells, tables.contexts)
        )
        wide, asked = self.widths
        derivatives = tables.config.objectives * wide + asked
        self.J = aligned(-(-rows // ROWS) * ROWS * derivatives)
        self.rooms = [tables.room() for _ in range(threads)]
        self.rows_last = [_derivatives(tables, wide, derivatives) for _ in range(threads)]
        parts = max(1, len(self.large) - 1)
        self.d_cells = aligned(parts * len(tables.cells) * wide, np.float64)
        self.d_contexts = aligned(parts * len(tables.contexts) * asked, np.float64)


def _added(sums: NDArray[np.float64], table: NDArray[Any], wide: int) -> NDArray[np.float64]:
    """Add the sums of all parts in a fixed order, so that timing does not decide the last digit."""
    total = sums.reshape(-1, len(table), wide).sum(axis=0)
    return np.ascontiguousarray(total[:, : table.shape[1]])


def _derivatives(tables: Tables, wide: int, count: int) -> NDArray[np.float32]:
    """Return room for the derivatives of sixteen rows, with those that are always the same."""
    room = aligned(count * ROWS)
    objectives, fields = tables.config.objectives, tables.cells.shape[1]
    by_field = room.reshape(count, ROWS)
    by_field[fields - 1 : objectives * wide : wide] = 1  # The last field is added as it is.
    if not tables.config.cross_attention:
        by_field[objectives * wide] = 1  # So is what the context adds.
    return room
