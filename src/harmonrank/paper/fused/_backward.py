"""Training step: fused scores with the derivatives of each row, and the backward pass."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.model.scorer.head_room import aligned
from harmonrank.paper.fused._folding import WeightVector
from harmonrank.paper.fused._forward import fuse_rows
from harmonrank.paper.fused._rows import load_rows, place_codes
from harmonrank.paper.fused._tables import Tables, check_shapes, code_rows
from harmonrank.support.kernel import simd_function, simd_kernel
from harmonrank.support.parallel import each_part, edges_of
from harmonrank.support.simd import ROWS, SINGLES, double_simd, item, put_simd, row_simd, simd
from harmonrank.support.simd_maths import of_all, transpose, widened

if TYPE_CHECKING:
    from harmonrank.paper.network import Network

Array = NDArray[Any]

_ZERO, _ONE = np.float32(0), np.float32(1)

_STEP_ROWS = 2048  # A tenth of a millisecond or so.


@simd_function
def derive_rows(
    M: int, F: int, d: int, ask: bool, smooth: bool, fused: Any, D: Array, J: Array, start: int
) -> None:
    """Write ∂s/∂(x, y, z, …) of every objective and ∂s/∂u into J, one row after the other.

    These are eqs. 9, 10 and 11 of docs/kernels.md; ∂s/∂A, eq. 7 of docs/kernels.md, is never kept.
    D has room for the same with rows as the last axis; each objective has a multiple of eight
    fields there. Constant derivatives, 1 and 0, are never written. Sums are kept in registers and
    written once. What `fuse_rows` was given and wrote is `fused`.
    """
    cell, u, A, own, s = fused
    wide = -(-F // SINGLES) * SINGLES
    for i in range(M):  # p_i and one over the sum of A_i become ∂s/∂(A o)_i and ∂s/∂(A c)_i
        to_o = row_simd(own, (3 * M + i) * ROWS) * row_simd(own, (5 * M + i) * ROWS)
        to_c = to_o * (row_simd(own, (2 * M + i) * ROWS) - row_simd(s, ROWS))
        put_simd(own, (3 * M + i) * ROWS, to_o)
        put_simd(own, (5 * M + i) * ROWS, to_c if ask else of_all(_ZERO))
    for j in range(M):
        _derive_token(j, M, F, wide, d, ask, cell, A, own, D)
        if smooth:
            _derive_gate(j, M, F, wide, cell, own, D)
    for f in range(d):  # Without self-attention α is zero by itself.
        _derive_attention(f, M, F, wide, d, cell, A, D)
    if ask:
        _derive_question(M, F, wide, d, cell, u, own, D)
    width = len(D) // ROWS
    for k in range(0, width, SINGLES):
        for half in range(0, ROWS, SINGLES):
            first = (start + half) * width + k
            transpose(D, k * ROWS + half, ROWS, J, first, width)


@simd_function
def _derive_token(
    j: int, M: int, F: int, wide: int, d: int, ask: bool, cell: Array, A: Array, own: Array,
    D: Array,
) -> None:  # fmt: skip
    """Write ∂s/∂z_j and ∂s/∂h_j; A_ij becomes α_ij = ∂s/∂(y_i · x_j), eq. 8 of docs/kernels.md."""
    h, z = row_simd(own, j * ROWS), 2 * d
    to_z, to_h = of_all(_ZERO), of_all(_ZERO)
    for i in range(M):
        a, c = row_simd(A, (i * M + j) * ROWS), row_simd(own, (M + i) * ROWS)
        to_o, to_c = row_simd(own, (3 * M + i) * ROWS), row_simd(own, (5 * M + i) * ROWS)
        if not ask:  # Each listener has a z of its own.
            z, to_z = 2 * d + i, of_all(_ZERO)
        to_z, to_h = to_z + to_o * a, to_h + to_c * a
        put_simd(D, (j * wide + z) * ROWS, to_z)
        beside = row_simd(cell, (j * F + z) * ROWS) - row_simd(own, (2 * M + i) * ROWS)
        put_simd(A, (i * M + j) * ROWS, a * (to_o * beside + to_c * (h - c)))
    put_simd(own, (6 * M + j) * ROWS, to_h)


@simd_function
def _derive_gate(j: int, M: int, F: int, wide: int, cell: Array, own: Array, D: Array) -> None:
    """Write ∂s/∂q = κ g (1 − g) and ∂s/∂κ = g, eq. 6 of docs/kernels.md."""
    g, kept = row_simd(own, (4 * M + j) * ROWS), row_simd(cell, (j * F + F - 2) * ROWS)
    put_simd(D, (j * wide + F - 3) * ROWS, kept * g * (of_all(_ONE) - g))
    put_simd(D, (j * wide + F - 2) * ROWS, g)


@simd_function
def _derive_attention(
    f: int, M: int, F: int, wide: int, d: int, cell: Array, A: Array, D: Array
) -> None:
    """Write field f of ∂s/∂x_i = Σ_j α_ji y_j and of ∂s/∂y_i = Σ_j α_ij x_j."""
    for i in range(M):
        to_x, to_y = of_all(_ZERO), of_all(_ZERO)
        for j in range(M):
            y = row_simd(cell, (j * F + d + f) * ROWS)
            to_x = to_x + row_simd(A, (j * M + i) * ROWS) * y
            to_y = to_y + row_simd(A, (i * M + j) * ROWS) * row_simd(cell, (j * F + f) * ROWS)
        put_simd(D, (i * wide + f) * ROWS, to_x)
        put_simd(D, (i * wide + d + f) * ROWS, to_y)


@simd_function
def _derive_question(
    M: int, F: int, wide: int, d: int, cell: Array, u: Array, own: Array, D: Array
) -> None:
    """Add h_j's part, h_j = u · x_j, to ∂s/∂x_j, and write ∂s/∂u."""
    for f in range(d):
        to_u, asked = of_all(_ZERO), row_simd(u, f * ROWS)
        for j in range(M):
            to_h, k = row_simd(own, (6 * M + j) * ROWS), (j * wide + f) * ROWS
            put_simd(D, k, row_simd(D, k) + to_h * asked)
            to_u = to_u + to_h * row_simd(cell, (j * F + f) * ROWS)
        put_simd(D, (M * wide + f) * ROWS, to_u)


@simd_kernel
def step_rows(
    begin: int, end: int, rows: Any, D: Array, J: Array, fused: Array, network: Any, room: Any
) -> None:
    """Fuse some rows of a batch and keep their derivatives.

    Args:
        begin: The first row, a multiple of sixteen.
        end: After the last one.
        rows: Which rows the batch is made of, and the codes and shares of all rows; the batch is
            `codes[index]` and `shares[index]`.
        D: Room for the derivatives of sixteen rows.
        J: Filled with the derivatives of every row, (rows, derivatives), flat.
        fused: Filled with scores.
        network: `Tables.network`.
        room: The fields of a `Room`.
    """
    index, codes, shares = rows
    first, cells, contexts, M, F, d, W, attend, ask, smooth, bias = network
    place, share, cell, u, A, own, s, turned = room
    for start in range(begin, end, ROWS):
        place_codes(codes, shares, index, start, M, first, smooth, place, share, turned)
        load_rows(place, share, cells, contexts, M, len(first) - M, F, W, smooth, cell, u, turned)
        fuse_rows(M, F, d, attend, ask, smooth, bias, cell, u, A, own, s)
        derive_rows(M, F, d, ask, smooth, (cell, u, A, own, s), D, J, start)
        put_simd(fused, start, row_simd(s, 0))


@simd_kernel
def scatter_rows(
    begin: int, end: int, part: int, rows: Any, slope: Array, J: Array, M: int, first: Array,
    smooth: bool, sums: Any,
) -> None:  # fmt: skip
    """Add ∂L/∂cells and ∂L/∂contexts of some rows, given ∂L/∂s and what `step_rows` kept.

    Each part of a batch has sums of its own, so that it does not matter who makes them. They begin
    at zero and are float64, as a popular bucket takes thousands of terms.

    Args:
        begin: The first row.
        end: After the last one.
        part: Which part of the batch these rows are.
        rows: As for `step_rows`.
        slope: ∂L/∂s.
        J: The derivatives of every row.
        M: How many objectives there are.
        first: Of `Tables`.
        smooth: Of `Tables`.
        sums: `cells`, (parts, rows of the table, wide), and `contexts`, (parts, rows of the table,
            asked), both flat, a row being filled up to a multiple of eight numbers; wide, asked;
            and how many numbers a part has in both.
    """
    (index, codes, _), (cells, contexts, wide, asked, per_cells, per_contexts) = rows, sums
    _scatter_cells(
        begin, end, rows, slope, J, M, first, smooth, cells, part * per_cells, wide, asked
    )
    _scatter_contexts(
        begin, end, index, codes, slope, J, M, first, contexts, part * per_contexts, wide, asked
    )


@simd_function
def _scatter_cells(
    low: int, high: int, rows: Any, slope: Array, J: Array, M: int, first: Array, smooth: bool,
    cells: Array, of_cells: int, wide: int, asked: int,
) -> None:  # fmt: skip
    """Add to the table row of each score, or to the two rows that it is interpolated from."""
    (index, codes, shares), columns = rows, len(first)
    for row in range(low, high):
        i, own = item(index, row), row * (M * wide + asked)
        for m in range(M):
            k = of_cells + (item(first, m) + item(codes, i * columns + m)) * wide
            for f in range(0, wide, SINGLES):
                whole = item(slope, row) * simd(J, own + m * wide + f)
                if smooth:
                    after, kf = item(shares, i * M + m) * whole, k + wide + f
                    put_simd(cells, kf, double_simd(cells, kf) + widened(after))
                    whole = whole - after
                put_simd(cells, k + f, double_simd(cells, k + f) + widened(whole))


@simd_function
def _scatter_contexts(
    low: int, high: int, index: Array, codes: Array, slope: Array, J: Array, M: int, first: Array,
    contexts: Array, of_contexts: int, wide: int, asked: int,
) -> None:  # fmt: skip
    """Add to the row of each feature's code; without features to the constant row."""
    columns = len(first)
    for row in range(low, high):
        i, own = item(index, row), row * (M * wide + asked) + M * wide
        for f in range(0, asked, SINGLES):
            more = widened(item(slope, row) * simd(J, own + f))
            for m in range(M, columns):
                k = of_contexts + (item(first, m) + item(codes, i * columns + m)) * asked + f
                put_simd(contexts, k, double_simd(contexts, k) + more)
            if columns == M:
                k = of_contexts + f
                put_simd(contexts, k, double_simd(contexts, k) + more)


class TrainingStep:
    """Fuses batches of some rows and turns ∂L/∂s into the gradient of every weight.

    Args:
        network: Gives the shape; its weights are read once, into `weights`.
        scores: (rows, objectives).
        context: (rows, features) codes.
        threads: How many threads work at once; the last digits of a gradient depend on it.

    Attributes:
        weights: The weights of the next step.
        gradient: The gradient of the last `backward`, laid out like the weights.
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
        rows, network = (index, self._codes, self._shares), tables.network

        def work(part: int) -> None:
            room, rows_last = batch.rooms.pop()  # There is one for each thread.
            ends = batch.small[part], batch.small[part + 1]
            step_rows(*ends, rows, rows_last, batch.J, fused, network, room)
            batch.rooms.append((room, rows_last))

        each_part(work, len(batch.small) - 1, self._threads)
        return fused[: len(index)]

    def backward(self, slope: NDArray[np.float32]) -> None:
        """Compute the gradient, given ∂L/∂s of the rows of the last `forward`."""
        tables, batch = self._tables, self._batch
        batch.d_cells[:] = batch.d_contexts[:] = 0
        rows, parts = (batch.index, self._codes, self._shares), len(batch.large) - 1
        M, first, smooth = tables.config.objectives, tables.first, tables.smooth
        sizes = batch.d_cells.size // max(parts, 1), batch.d_contexts.size // max(parts, 1)
        sums = batch.d_cells, batch.d_contexts, *batch.widths, *sizes

        def work(part: int) -> None:
            ends = batch.large[part], batch.large[part + 1]
            scatter_rows(*ends, part, rows, slope, batch.J, M, first, smooth, sums)

        each_part(work, parts, self._threads)
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
        # The cost of sums grows with their tables, so there is one part for each thread.
        self.large = edges_of(rows, max(_STEP_ROWS, -(-rows // threads)))
        # Numbers are written and added by eight, so rows are padded to a multiple of eight.
        self.widths = tuple(
            -(-table.shape[1] // SINGLES) * SINGLES for table in (tables.cells, tables.contexts)
        )
        wide, asked = self.widths
        derivatives = tables.config.objectives * wide + asked
        self.J = aligned(-(-rows // ROWS) * ROWS * derivatives, np.float32)
        self.rooms = [
            (tuple(tables.room()), _derivatives(tables, wide, derivatives)) for _ in range(threads)
        ]
        parts = max(1, len(self.large) - 1)
        self.d_cells = aligned(parts * len(tables.cells) * wide, np.float64)
        self.d_contexts = aligned(parts * len(tables.contexts) * asked, np.float64)


def _added(sums: NDArray[np.float64], table: NDArray[Any], wide: int) -> NDArray[np.float64]:
    """Add the sums of all parts in a fixed order, so that results do not depend on timing."""
    total = sums.reshape(-1, len(table), wide).sum(axis=0)
    return np.ascontiguousarray(total[:, : table.shape[1]])


def _derivatives(tables: Tables, wide: int, count: int) -> NDArray[np.float32]:
    """Return room for the derivatives of sixteen rows, with the constant ones filled in."""
    room = aligned(count * ROWS, np.float32)
    objectives, fields = tables.config.objectives, tables.cells.shape[1]
    by_field = room.reshape(count, ROWS)
    by_field[fields - 1 : objectives * wide : wide] = 1  # The derivative of the last field is 1.
    if not tables.config.cross_attention:
        by_field[objectives * wide] = 1  # So is what the context adds.
    return room
