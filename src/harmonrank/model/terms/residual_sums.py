"""Sums of the residual: gradient and curvature of a head's likelihood in chosen groups.

Gradients are of all rows. Curvature is of a sample, drawn in proportion to p(1−p), which is what a
row adds to it.
"""

__all__ = [
    "CURVE",
    "FINE",
    "KINDS",
    "PAIR",
    "SURFACE",
    "Group",
    "ResidualRows",
    "blocks_of",
    "groups_of",
]

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harmonrank.model.linear.heads_sums import PERIODS, HeadSums
from harmonrank.model.terms.residual import (
    CURVE_KNOTS,
    FINE_KNOTS,
    SURFACE_KNOTS,
    context_pairs,
    surface_pairs,
)
from harmonrank.model.terms.residual_kernels import (
    CURVE,
    FINE,
    PAIR,
    SLOPE,
    SURFACE,
    VALUE,
    Affine,
    Cells,
    GroupTable,
    RowTable,
    fill,
)
from harmonrank.model.terms.residual_sums_kernels import (
    BAND,
    add_blocks,
    add_curvature,
    add_gradient,
    add_look,
)
from harmonrank.support.logistic import sigmoid
from harmonrank.support.parallel import each_part

KINDS = ("value", "curve", "fine", "slope", "surface", "pair")
"""The array that holds the coefficients of each kind; of `Residual`, all but the fine curves."""

# Kinds of which a row touches several coefficients.
_BENT = (CURVE, FINE, SURFACE)
# Rows are added up in this many parts, whatever the number of threads, so that it does not matter.
_PARTS = 4


@dataclass(frozen=True)
class Group:
    """Coefficients that one precision shrinks.

    Attributes:
        kind: VALUE, CURVE, FINE, SLOPE, SURFACE or PAIR.
        a, b: The input or feature, and the second one; of a curve, its row in `Cells`.
        size: How many coefficients.
        first: Where its coefficients begin in the array of its kind.
    """

    kind: int
    a: int
    b: int
    size: int
    first: int


def groups_of(M: int, slots: tuple[int, ...]) -> list[Group]:
    """Return all groups that a head may have."""
    start = np.cumsum([0, *slots]).tolist()
    groups = [Group(VALUE, f, f, size, start[f]) for f, size in enumerate(slots)]
    V = 2 * M + 1
    groups += [Group(CURVE, i, i, CURVE_KNOTS, i * CURVE_KNOTS) for i in range(V)]
    groups += [Group(FINE, i, V + i, FINE_KNOTS, i * FINE_KNOTS) for i in range(V)]
    groups += [
        Group(SLOPE, j, f, size, j * start[-1] + start[f])
        for j in range(M)
        for f, size in enumerate(slots)
    ]
    area = SURFACE_KNOTS**2
    groups += [Group(SURFACE, i, k, area, n * area) for n, (i, k) in enumerate(surface_pairs(M))]
    first = 0
    for f, g in context_pairs(slots):
        groups.append(Group(PAIR, f, g, slots[f] * slots[g], first))
        first += slots[f] * slots[g]
    return groups


@dataclass(frozen=True)
class ResidualRows:
    """Rows as the kernels take them, in the order of their contexts.

    Attributes:
        slots: Codes per context feature.
        low, high: (V,) first and last knot of each input.
        inputs: (rows, V) of `inputs_of`, float32.
        contexts: (contexts, features) distinct codes.
        context: (rows,) which of them a row has.
        heads: (rows, M) logits of the linear heads, float32.
        labels: (M, rows) from 0 to 1.
        weight: (rows,), or (M, rows) where rows count differently for each head; float32.
        period: (rows,) which of the `PERIODS` of the log a row belongs to, uint8.
    """

    slots: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    inputs: np.ndarray
    contexts: np.ndarray
    context: np.ndarray
    heads: np.ndarray
    labels: np.ndarray
    weight: np.ndarray
    period: np.ndarray

    @classmethod
    def of(
        cls,
        data: HeadSums,
        slots: tuple[int, ...],
        theta: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
    ) -> "ResidualRows":
        """Take over the rows that the linear heads were fitted on."""
        M, rows = data.away.shape
        inputs = np.empty((rows, 2 * M + 1), np.float32)
        heads = np.empty((rows, M), np.float32)
        context = np.empty(rows, np.int32)
        for block, runs in data.blocks(2 * M * M):
            surprise = data.surprise(block)
            given = Affine(data.mean[block], surprise, *data.affine(theta, block, surprise))
            count = runs.stop - runs.start

            def take(part: int) -> None:
                begin = runs.start + count * part // _PARTS  # noqa: B023
                end = runs.start + count * (part + 1) // _PARTS  # noqa: B023
                fill(
                    data.away, given, data.run_start, data.run_context, block.start,  # noqa: B023
                    begin, end, inputs, heads, context,
                )  # fmt: skip

            each_part(take, _PARTS)
        few = data.few_rows
        first = rows - len(few.context)
        few.write(theta, inputs[first:], heads[first:])
        context[first:] = data.common + few.context
        return cls(
            slots, low, high, inputs, data.contexts, context, heads, data.labels, data.weight,
            data.period,
        )  # fmt: skip

    @cached_property
    def _table(self) -> RowTable:
        per_unit, slots = 1.0 / (self.high - self.low), np.array(self.slots, np.int64)
        given = self.inputs, self.contexts, self.context, self.heads
        return RowTable(self.low, per_unit, slots, *given)

    def _cells(self, dtype: Any = np.float64) -> Cells:
        return Cells.room(self.inputs.shape[1], dtype)

    def at(
        self, m: int, groups: list[Group], theta: np.ndarray, out: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return log-likelihood and gradient of head m; write its logits to `out`.

        Args:
            m: The head.
            groups: Which have coefficients.
            theta: 2 + M linear ones, then those of the groups.
            out: (rows,), float32.
        """
        value, table = np.zeros(_PARTS), _table(groups, self.heads.shape[1])
        given = self.labels[m], self._weight_of(m), self._table, table

        def add(part: int, gradient: np.ndarray) -> None:
            ends = len(out) * part // _PARTS, len(out) * (part + 1) // _PARTS
            value[part] = add_gradient(m, *ends, *given, self._cells(), theta, out, gradient)

        gradient = _summed(theta.shape, add)
        return float(value.sum()), gradient

    def look(self, groups: list[Group]) -> np.ndarray:
        """Return gradients (PERIODS, size, M) where all groups are 0.

        One pass serves all heads: what a row touches does not depend on the head.
        """
        rows, M = self.heads.shape
        size = 2 + M + sum(g.size for g in groups)
        weight = np.atleast_2d(self.weight)  # (1 or M, rows)
        given = self.labels, weight, self.period, self._table, _table(groups, M)

        def add(part: int, gradient: np.ndarray) -> None:
            ends = rows * part // _PARTS, rows * (part + 1) // _PARTS
            add_look(*ends, *given, self._cells(), gradient)

        return _summed((PERIODS, size, M), add)

    def totals(self) -> np.ndarray:
        """Return Σ weight·p(1−p) of every linear head, (M,)."""
        p = sigmoid(self.heads)
        if self.weight.ndim == 2:
            return np.asarray((self.weight.T.astype(np.float64) * (p * (1 - p))).sum(axis=0))
        total: np.ndarray = self.weight.astype(np.float64) @ (p * (1 - p))
        return total

    def _weight_of(self, m: int) -> np.ndarray:
        return self.weight if self.weight.ndim == 1 else np.asarray(self.weight[m])

    def sample(self, logits: np.ndarray, each: float, m: int = 0) -> tuple[np.ndarray, float]:
        """Return rows drawn in proportion to weight·p(1−p) of head m, and how much each stands for.

        The draw is systematic: at equal distances, near `each`, along the running total.
        """
        p = sigmoid(logits)
        # Drawn in proportion to h = weight·p(1−p), rows need no weight: Σ h x xᵀ ≈ each · Σ x xᵀ.
        total = np.cumsum(self._weight_of(m) * p * (1 - p), dtype=np.float64)
        # At least one row, which then has to stand for all of them.
        size = max(1, round(float(total[-1]) / max(each, 1e-300)))
        each = float(total[-1]) / size
        rows = np.searchsorted(total, each * (np.arange(size) + 0.5))
        return np.minimum(rows, len(total) - 1), each

    def bands(self, groups: list[Group], rows: np.ndarray, each: float) -> np.ndarray:
        """Return each group's own block of curvature, from a sample, as `blocks_of` takes them."""
        corners, table = _corners(groups), _table(groups, self.heads.shape[1])
        pieces = np.array_split(rows, _PARTS)

        def add(part: int, sums: np.ndarray) -> None:
            add_blocks(pieces[part], self._table, table, self._cells(np.float32), corners, sums)

        return each * _summed((corners[-1],), add)

    def curvature(
        self, m: int, groups: list[Group], size: int, rows: np.ndarray, each: float
    ) -> np.ndarray:
        """Return the negative Hessian of head m in all its coefficients, from a sample."""
        pieces, table = np.array_split(rows, _PARTS), _table(groups, self.heads.shape[1])

        def add(part: int, sums: np.ndarray) -> None:
            add_curvature(m, pieces[part], self._table, table, self._cells(np.float32), sums)

        lower = _summed((size, size), add)
        whole: np.ndarray = each * (lower + np.tril(lower, -1).T)
        return whole


def _summed(shape: tuple[int, ...], add: Callable[[int, np.ndarray], None]) -> np.ndarray:
    """Return what all parts add; each has sums of its own, so that threads change no digit."""
    sums = np.zeros((_PARTS, *shape))
    each_part(lambda part: add(part, sums[part]), _PARTS)
    total: np.ndarray = sums.sum(axis=0)
    return total


def _corners(groups: list[Group]) -> np.ndarray:
    """Return where the numbers of each group begin in `ResidualRows.bands`, and their end."""
    widths = [len(BAND) if group.kind in _BENT else 1 for group in groups]
    sizes = [group.size * width for group, width in zip(groups, widths, strict=True)]
    return np.cumsum([0, *sizes], dtype=np.int64)


def blocks_of(groups: list[Group], bands: np.ndarray) -> list[np.ndarray]:
    """Return each group's own block of curvature, (size²,) or (size,) where it is a diagonal."""
    blocks = np.split(bands, _corners(groups)[1:-1])
    for number, group in enumerate(groups):
        if group.kind in _BENT:
            lower = np.zeros((group.size, group.size))
            for column, apart in zip(blocks[number].reshape(group.size, -1).T, BAND, strict=True):
                row = np.arange(apart, group.size)
                lower[row, row - apart] = column[apart:]
            blocks[number] = (lower + np.tril(lower, -1).T).reshape(-1)
    return blocks


def _table(groups: list[Group], M: int) -> GroupTable:
    """Return groups, whose coefficients follow 2 + M linear ones, as the kernels take them."""
    first = 2 + M + np.cumsum([0, *(g.size for g in groups)])
    rows = [(g.kind, g.a, g.b, start) for g, start in zip(groups, first, strict=False)]
    table = np.array(rows, np.int64).reshape(-1, 4)
    curves, fine = (np.unique(table[table[:, 0] == kind, 1]) for kind in (CURVE, FINE))
    joined = np.unique(table[table[:, 0] == SURFACE, 1:3])
    kinds = np.searchsorted(table[:, 0], np.arange(PAIR + 1))
    return GroupTable(table, kinds, curves, fine, joined)
