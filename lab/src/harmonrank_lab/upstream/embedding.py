"""Embedding: one table for all fields, pooled by side, trained on touched rows only."""

__all__ = ["Embedding", "Layout", "Rows"]

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from harmonrank.support import each_part
from harmonrank.support.kernel import kernel

Array = np.ndarray

_EPSILON = 1e-8


class Codes(NamedTuple):
    """Which rows of the table the entities of all sides but the context touch.

    Attributes:
        flat: Codes of all entities of all sides, one after the other, int32.
        starts: Where a side begins in `flat`.
        fields: How many codes an entity of that side has.
    """

    flat: np.ndarray
    starts: np.ndarray
    fields: np.ndarray


class State(NamedTuple):
    """What a step changes, and how far.

    Attributes:
        table: (table rows, width).
        squares: (table rows,), sums of squared gradients.
        scratch: Like the table, all 0 before and after.
        hits: (table rows,), all 0 before and after.
        shrink: (table rows,), the pull towards 0 of each touch.
        rates: (fields,), step length of each field.
    """

    table: np.ndarray
    squares: np.ndarray
    scratch: np.ndarray
    hits: np.ndarray
    shrink: np.ndarray
    rates: np.ndarray


@kernel
def pool(table: Any, codes: Codes, keys: Any, context: Any, pooled: Any) -> None:
    """Sum the table rows of each side of every log row: pooled_s = Σ_f table[code_sf].

    Args:
        table: (table rows, width).
        codes: Of the entities.
        keys: (rows, sides), which entity of each side.
        context: (rows, fields), the codes of the last side as they are.
        pooled: (rows, (sides + 1)·width), written.
    """
    flat, starts, fields = codes
    rows, sides = keys.shape
    width = table.shape[1]
    for i in range(rows):
        pooled[i, :] = 0
        for s in range(sides + 1):
            count = fields[s] if s < sides else context.shape[1]
            for f in range(count):
                # The codes of an entity are kept once; only the context's stand in the rows.
                r = flat[starts[s] + keys[i, s] * count + f] if s < sides else context[i, f]
                for k in range(width):
                    pooled[i, s * width + k] += table[r, k]


@kernel
def step_field(job: int, state: State, codes: Codes, keys: Any, context: Any, slope: Any) -> None:
    """Take one step of row-wise Adagrad on the rows of a field that a batch touched.

    g_r = Σ_{i touches r} slope_i + hits_r·shrink_r·table_r;
    squares_r += mean g_r²; table_r −= rate_f · g_r / √squares_r.

    Fields own disjoint table rows, so that one thread per field meets no other.

    Args:
        job: Which field, counted over all sides.
        state: Changed.
        codes: As in `pool`.
        keys: As in `pool`.
        context: As in `pool`.
        slope: Of the summed loss by `pooled`.
    """
    table, squares, scratch, hits, shrink, rates = state
    flat, starts, fields = codes
    rows, sides = keys.shape
    width = table.shape[1]
    ends = np.cumsum(np.append(fields, context.shape[1]))
    s = np.searchsorted(ends, job, side="right")
    count = fields[s] if s < sides else context.shape[1]
    f = job - (ends[s] - count)
    touched = np.empty(rows, np.int64)
    distinct = 0
    for i in range(rows):
        r = np.int64(flat[starts[s] + keys[i, s] * count + f] if s < sides else context[i, f])
        # Of a table of millions of rows a batch touches thousands: those alone are visited again.
        if hits[r] == 0:
            touched[distinct] = r
            distinct += 1
        hits[r] += 1
        for k in range(width):
            scratch[r, k] += slope[i, s * width + k]
    for place in range(distinct):
        r = touched[place]
        # A row that comes N times in an epoch is pulled N times by λ/N: once by its whole prior.
        pull = hits[r] * shrink[r]
        hits[r] = 0
        size = np.float32(0)
        for k in range(width):
            g = scratch[r, k] + pull * table[r, k]
            scratch[r, k] = g
            size += g * g
        squares[r] += size / width
        step = rates[job] / (np.sqrt(squares[r]) + _EPSILON)
        for k in range(width):
            table[r, k] -= step * scratch[r, k]
            scratch[r, k] = 0


@dataclass(frozen=True)
class Layout:
    """Where each side keeps the codes of its entities.

    Attributes:
        codes: Of all entities of all keyed sides.
        counts: (table rows,), how many training rows touch each table row.
        rates: (fields,), step length of each field relative to the others, context last.
    """

    codes: Codes
    counts: np.ndarray
    rates: np.ndarray

    @classmethod
    def of(
        cls, sides: Sequence[Array], context_fields: int, counts: Array, rates: Array | None = None
    ) -> "Layout":
        """Lay out sides, each (entities, fields); all fields learn at the same rate if not told."""
        flat = np.concatenate([codes.ravel() for codes in sides]).astype(np.int32)
        sizes, fields = np.array([[c.size, c.shape[1]] for c in sides], dtype=np.int64).T.copy()
        every = np.ones(fields.sum() + context_fields) if rates is None else rates
        return cls(Codes(flat, np.cumsum(sizes) - sizes, fields), counts, every)

    @property
    def sides(self) -> int:
        """Keyed sides and the context."""
        return len(self.codes.fields) + 1


@dataclass(frozen=True)
class Rows:
    """Rows of a log in the smallest form that a network reads.

    Attributes:
        keys: (rows, sides), which entity of each side, int32.
        context: (rows, fields), codes, int32.
        labels: (rows, objectives), 0 and 1, uint8.
    """

    keys: np.ndarray
    context: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, index: np.ndarray | slice) -> "Rows":
        """Return some of the rows."""
        return Rows(self.keys[index], self.context[index], self.labels[index])

    def pieces(self, size: int) -> list["Rows"]:
        """Return the rows in order, so many at a time."""
        return [self.take(slice(start, start + size)) for start in range(0, len(self), size)]

    @staticmethod
    def join(parts: Sequence["Rows"]) -> "Rows":
        """Return the rows of all parts, in order."""
        columns = zip(*((p.keys, p.context, p.labels) for p in parts), strict=True)
        return Rows(*map(np.concatenate, columns))


class Embedding(nn.Module):
    """Embedding rows of every field in one table.

    A side (user, item, context) is the sum of its fields' vectors, so that an entity without an
    ID of its own is still told by its features. The table is no parameter: its gradient would be
    as large as itself. `step` changes the touched rows by row-wise Adagrad, with a pull towards 0
    that adds up to `shrinkage` per epoch for each table row, however often it is touched: the
    Gaussian prior of a random effect. A row that was never touched counts as 0.

    Args:
        layout: Codes of all entities.
        width: Of the vectors.
        shrinkage: 1/variance of the prior.
        rate: Step length of Adagrad, to be scaled by the field's own.
        generator: Draws them.
    """

    table: Tensor
    squares: Tensor

    def __init__(
        self,
        layout: Layout,
        width: int,
        *,
        shrinkage: float = 10.0,
        rate: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self._layout, self.width = layout, width
        size = len(layout.counts)
        first = torch.empty(size, width).normal_(0, 0.1, generator=generator)
        self.register_buffer("table", first)
        self.register_buffer("squares", torch.zeros(size))
        self._shrink = (shrinkage / np.maximum(layout.counts, 1)).astype(np.float32)
        self._scratch: np.ndarray | None = None
        self._rates = (rate * layout.rates).astype(np.float32)

    @property
    def sides(self) -> int:
        """How many vectors a row becomes."""
        return self._layout.sides

    def use(self, layout: Layout) -> None:
        """Read the codes of other entities; the table stays."""
        self._layout = layout

    def forward(self, rows: Rows) -> Tensor:
        """Return pooled vectors, (rows, sides·width)."""
        pooled = np.empty((len(rows), self.sides * self.width), np.float32)
        pool(self.table.numpy(), self._layout.codes, rows.keys, rows.context, pooled)
        return torch.from_numpy(pooled)

    def step(self, rows: Rows, slope: Tensor) -> None:
        """Change the touched rows; the slope is that of the loss summed over the rows."""
        table = self.table.numpy()
        if self._scratch is None:
            self._scratch = np.zeros_like(table)
            self._hits = np.zeros(len(table), np.int32)
        squares, codes = self.squares.numpy(), self._layout.codes
        state = State(table, squares, self._scratch, self._hits, self._shrink, self._rates)
        given = state, codes, rows.keys, rows.context, slope.numpy()
        fields = int(codes.fields.sum()) + rows.context.shape[1]
        each_part(lambda f: step_field(f, *given), fields)

    def forget_untouched(self) -> None:
        """Put the rows that training never touched at 0, the mean of their prior."""
        self.table[self.squares == 0] = 0

    def release(self) -> None:
        """Give back the memory that only training needs."""
        self._scratch = None
