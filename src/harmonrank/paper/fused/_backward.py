"""Training step: fused scores with the derivatives of each row, and the backward pass."""

__all__ = ["TrainingStep", "derive_rows", "scatter_parts", "step_parts"]

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.fused._folding import WeightVector
from harmonrank.paper.fused._forward import fuse_rows
from harmonrank.paper.fused._rows import NetworkTables, Room, aligned, load_rows, place_codes
from harmonrank.paper.fused._tables import Tables, check_shapes, code_rows
from harmonrank.support.kernel import lane_function, record_kernel
from harmonrank.support.parallel import claim, edges_of, finish, in_parallel
from harmonrank.support.simd import ROWS, SINGLES, double_lanes, item, lanes, put_lanes, row_lanes
from harmonrank.support.simd_maths import of_all, transpose, widened

if TYPE_CHECKING:
    from harmonrank.paper.network import Network

Array = NDArray[Any]

_ZERO, _ONE = np.float32(0), np.float32(1)

_STEP_ROWS = 1024  # Some part of a tenth of a millisecond.


@lane_function
def derive_rows(start: int, network: Any, room: Any, D: Array, J: Array) -> None:
    """Write ∂s/∂(x, y, z, …) of every objective and ∂s/∂u into J, one row after the other.

    These are eqs. 9, 10 and 11 of docs/kernels.md; ∂s/∂A, eq. 7 of docs/kernels.md, is never kept.
    D has room for the same, the row being the last axis; each objective has a multiple of eight
    fields there. What is never written is the derivative of what is added as it is, 1, and of
    nothing, 0. Sums are kept in registers, each written once.
    """
    M, F, d, ask = network.M, network.F, network.d, network.ask
    cell, A, own, s = room.cell, room.A, room.own, room.s
    wide = -(-F // SINGLES) * SINGLES
    for i in range(M):  # p_i and one over the sum of A_i become ∂s/∂(A o)_i and ∂s/∂(A c)_i
        to_o = row_lanes(own, (3 * M + i) * ROWS) * row_lanes(own, (5 * M + i) * ROWS)
        to_c = to_o * (row_lanes(own, (2 * M + i) * ROWS) - row_lanes(s, ROWS))
        put_lanes(own, (3 * M + i) * ROWS, to_o)
        put_lanes(own, (5 * M + i) * ROWS, to_c if ask else of_all(_ZERO))
    for j in range(M):
        _derive_token(j, M, F, wide, d, ask, cell, A, own, D)
        if network.smooth:
            _derive_gate(j, M, F, wide, cell, own, D)
    for f in range(d):  # Without self-attention α is zero by itself.
        _derive_attention(f, M, F, wide, d, cell, A, D)
    if ask:
        _derive_question(M, F, wide, d, cell, room.u, own, D)
    width = len(D) // ROWS
    for k in range(0, width, SINGLES):
        for half in range(0, ROWS, SINGLES):
            first = (start + half) * width + k
            transpose(D, k * ROWS + half, ROWS, J, first, width)


@lane_function
def _derive_token(
    j: int, M: int, F: int, wide: int, d: int, ask: bool, cell: Array, A: Array, own: Array,
    D: Array,
) -> None:  # fmt: skip
    """Write ∂s/∂z_j and ∂s/∂h_j; A_ij becomes α_ij = ∂s/∂(y_i · x_j), eq. 8 of docs/kernels.md."""
    h, z = row_lanes(own, j * ROWS), 2 * d
    to_z, to_h = of_all(_ZERO), of_all(_ZERO)
    for i in range(M):
        a, c = row_lanes(A, (i * M + j) * ROWS), row_lanes(own, (M + i) * ROWS)
        to_o, to_c = row_lanes(own, (3 * M + i) * ROWS), row_lanes(own, (5 * M + i) * ROWS)
        if not ask:  # Each listener has a z of its own.
            z, to_z = 2 * d + i, of_all(_ZERO)
        to_z, to_h = to_z + to_o * a, to_h + to_c * a
        put_lanes(D, (j * wide + z) * ROWS, to_z)
        beside = row_lanes(cell, (j * F + z) * ROWS) - row_lanes(own, (2 * M + i) * ROWS)
        put_lanes(A, (i * M + j) * ROWS, a * (to_o * beside + to_c * (h - c)))
    put_lanes(own, (6 * M + j) * ROWS, to_h)


@lane_function
def _derive_gate(j: int, M: int, F: int, wide: int, cell: Array, own: Array, D: Array) -> None:
    """Write ∂s/∂q = κ g (1 − g) and ∂s/∂κ = g, eq. 6 of docs/kernels.md."""
    g, kept = row_lanes(own, (4 * M + j) * ROWS), row_lanes(cell, (j * F + F - 2) * ROWS)
    put_lanes(D, (j * wide + F - 3) * ROWS, kept * g * (of_all(_ONE) - g))
    put_lanes(D, (j * wide + F - 2) * ROWS, g)


@lane_function
def _derive_attention(
    f: int, M: int, F: int, wide: int, d: int, cell: Array, A: Array, D: Array
) -> None:
    """Write field f of ∂s/∂x_i = Σ_j α_ji y_j and of ∂s/∂y_i = Σ_j α_ij x_j."""
    for i in range(M):
        to_x, to_y = of_all(_ZERO), of_all(_ZERO)
        for j in range(M):
            y = row_lanes(cell, (j * F + d + f) * ROWS)
            to_x = to_x + row_lanes(A, (j * M + i) * ROWS) * y
            to_y = to_y + row_lanes(A, (i * M + j) * ROWS) * row_lanes(cell, (j * F + f) * ROWS)
        put_lanes(D, (i * wide + f) * ROWS, to_x)
        put_lanes(D, (i * wide + d + f) * ROWS, to_y)


@lane_function
def _derive_question(
    M: int, F: int, wide: int, d: int, cell: Array, u: Array, own: Array, D: Array
) -> None:
    """Add h_j's part, h_j = u · x_j, to ∂s/∂x_j, and write ∂s/∂u."""
    for f in range(d):
        to_u, asked = of_all(_ZERO), row_lanes(u, f * ROWS)
        for j in range(M):
            to_h, k = row_lanes(own, (6 * M + j) * ROWS), (j * wide + f) * ROWS
            put_lanes(D, k, row_lanes(D, k) + to_h * asked)
            to_u = to_u + to_h * row_lanes(cell, (j * F + f) * ROWS)
        put_lanes(D, (M * wide + f) * ROWS, to_u)


@record_kernel
def step_parts(
    claims: Array, who: int, rows: Any, D: Array, J: Array, fused: Array, network: Any, room: Any
) -> None:
    """Fuse rows part by part, as long as there are parts that no other thread has claimed.

    All results of a part are written before it counts as finished: the caller may go on as soon
    as all parts are, and before this function returns.

    Args:
        claims: Of `support.parallel`.
        who: The number of this thread.
        rows: Edges of the parts, which rows they are, and the codes and shares of all rows; a part
            is `codes[index]` and `shares[index]` between two edges.
        D: Room for the derivatives of sixteen rows.
        J: Filled with the derivatives of every row, (rows, derivatives), flat.
        fused: Filled with scores.
        network: `Tables.network`.
        room: The fields of a `Room`.
    """
    edges, network, room = rows[0], NetworkTables(*network), Room(*room)
    while True:
        part = claim(claims, who, len(edges) - 1)
        if part >= len(edges) - 1:
            return
        for start in range(edges[part], edges[part + 1], ROWS):
            place_codes(start, rows, network, room)
            load_rows(network, room)
            fuse_rows(network, room)
            derive_rows(start, network, room, D, J)
            put_lanes(fused, start, row_lanes(room.s, 0))
        finish(claims)


@record_kernel
def scatter_parts(
    claims: Array, who: int, rows: Any, slope: Array, J: Array, M: int, first: Array, smooth: bool,
    sums: Any,
) -> None:  # fmt: skip
    """Add ∂L/∂cells and ∂L/∂contexts of each part, given ∂L/∂s and what `step_parts` kept.

    Parts are claimed as there; each has sums of its own, so that it does not matter who makes
    them. They begin at zero and are float64, as a popular bucket takes thousands of terms.

    Args:
        claims: Of `support.parallel`.
        who: The number of this thread.
        rows: As for `step_parts`.
        slope: ∂L/∂s.
        J: The derivatives of every row.
        M: How many objectives there are.
        first: Of `Tables`.
        smooth: Of `Tables`.
        sums: `cells`, (parts, rows of the table, wide), and `contexts`, (parts, rows of the table,
            asked), both flat, a row being filled up to a multiple of eight numbers; wide, asked.
    """
    parts = len(rows[0]) - 1
    while True:
        part = claim(claims, who, parts)
        if part >= parts:
            return
        _scatter_cells(part, rows, slope, J, M, first, smooth, sums)
        _scatter_contexts(part, rows, slope, J, M, first, sums)
        finish(claims)


@lane_function
def _scatter_cells(
    part: int, rows: Any, slope: Array, J: Array, M: int, first: Array, smooth: bool, sums: Any
) -> None:
    """Add to the row of each score, or divide between the two rows that are mixed."""
    (edges, index, codes, shares), (cells, _, wide, asked) = rows, sums
    columns, of_cells = len(first), part * (len(cells) // (len(edges) - 1))
    for row in range(edges[part], edges[part + 1]):
        i, own = item(index, row), row * (M * wide + asked)
        for m in range(M):
            k = of_cells + (item(first, m) + item(codes, i * columns + m)) * wide
            for f in range(0, wide, SINGLES):
                whole = item(slope, row) * lanes(J, own + m * wide + f)
                if smooth:
                    after, kf = item(shares, i * M + m) * whole, k + wide + f
                    put_lanes(cells, kf, double_lanes(cells, kf) + widened(after))
                    whole = whole - after
                put_lanes(cells, k + f, double_lanes(cells, k + f) + widened(whole))


@lane_function
def _scatter_contexts(
    part: int, rows: Any, slope: Array, J: Array, M: int, first: Array, sums: Any
) -> None:
    """Add to the row of each feature's code; without features to the constant row."""
    (edges, index, codes, _), (_, contexts, wide, asked) = rows, sums
    columns, of_contexts = len(first), part * (len(contexts) // (len(edges) - 1))
    for row in range(edges[part], edges[part + 1]):
        i, own = item(index, row), row * (M * wide + asked) + M * wide
        for f in range(0, asked, SINGLES):
            more = widened(item(slope, row) * lanes(J, own + f))
            for m in range(M, columns):
                k = of_contexts + (item(first, m) + item(codes, i * columns + m)) * asked + f
                put_lanes(contexts, k, double_lanes(contexts, k) + more)
            if columns == M:
                k = of_contexts + f
                put_lanes(contexts, k, double_lanes(contexts, k) + more)


class TrainingStep:
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
        self.weights, self.gradient = WeightVector.of(network), WeightVector.of(network)
        self.gradient.vector[:] = 0  # A weight that a switch leaves out has none.
        self._tables = Tables(network.config, network.scores.knots.numpy())
        self._batch = _Batch(self._tables, np.empty(0, np.int64), 1)
        M = network.config.objectives
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
        rows, network = (batch.small, index, self._codes, self._shares), tables.network

        def work(claims: Array, who: int) -> None:
            kept = batch.rows_last[who], batch.J, fused
            step_parts(claims, who, rows, *kept, network, tuple(batch.rooms[who]))

        in_parallel(work, len(batch.small) - 1, self._threads)
        return fused[: len(index)]

    def backward(self, slope: NDArray[np.float32]) -> None:
        """Compute the gradient, given ∂L/∂s of the rows of the last `forward`."""
        tables, batch = self._tables, self._batch
        batch.d_cells[:] = batch.d_contexts[:] = 0
        rows = batch.large, batch.index, self._codes, self._shares
        network = tables.config.objectives, tables.first, tables.smooth
        sums = batch.d_cells, batch.d_contexts, *batch.widths

        def work(claims: Array, who: int) -> None:
            scatter_parts(claims, who, rows, slope, batch.J, *network, sums)

        in_parallel(work, len(batch.large) - 1, self._threads)
        wide, asked = batch.widths
        cells = _added(batch.d_cells, tables.cells, wide)
        contexts = _added(batch.d_contexts, tables.contexts, asked)
        total = float(slope.sum(dtype=np.float64))
        tables.back(cells, contexts, total, self.gradient)


class _Batch:
    """Memory for a batch of so many rows, and where the parts of both passes begin."""

    def __init__(self, tables: Tables, index: NDArray[np.int64], threads: int) -> None:
        self.index, rows = index, len(index)
        self.small = edges_of(rows, _STEP_ROWS)
        # Sums cost as much as their tables are large, so there are no more than threads.
        self.large = edges_of(rows, max(_STEP_ROWS, -(-rows // threads)))
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
