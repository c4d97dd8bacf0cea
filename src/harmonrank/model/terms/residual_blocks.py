"""What the residual's fit asks of the rows, block by block: sums that are added in order.

Inputs and logits of a block are made of its `HeadSums` whenever they are needed, as that takes less
time than adding them up, and keeping them would take twice the memory of the rows.
"""

__all__ = ["Answer", "Ask", "Look", "ResidualBlocks"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.data.rows.blocks import Blocks
from harmonrank.model.linear.heads_sums import HeadSums
from harmonrank.model.terms.residual_sums import Group, ResidualRows, blocks_of

_SAMPLE = 50_000  # Rows of which curvature is added up.
_ENDS = (0.002, 0.998)  # Quantiles where the first and the last knot are.
_END_ROWS = 200_000


@dataclass(frozen=True)
class Ask:
    """A question about the likelihood of one head.

    Attributes:
        head: Which.
        groups: Those that have coefficients.
        theta: 2 + M linear ones, then those of the groups.
        curved: Groups whose curvature is asked for too, some of these; None for no curvature.
    """

    head: int
    groups: list[Group]
    theta: np.ndarray
    curved: list[Group] | None


@dataclass(frozen=True)
class Answer:
    """Log-likelihood and gradient at theta, and the negative Hessian in the groups asked for."""

    value: float
    gradient: np.ndarray
    curvature: np.ndarray | None


@dataclass(frozen=True)
class Look:
    """What is known of a linear head before any group is admitted.

    Attributes:
        periods: (PERIODS, size) gradient of each period of the log.
        blocks: Each group's own block of curvature.
    """

    periods: np.ndarray
    blocks: list[np.ndarray]

    def pulls(self, groups: list[Group]) -> list[np.ndarray]:
        """Return the gradients of each group, (PERIODS, its size)."""
        own = self.periods[:, self.periods.shape[1] - sum(group.size for group in groups) :]
        return np.split(own, np.cumsum([group.size for group in groups])[:-1], axis=1)


@dataclass(frozen=True)
class ResidualBlocks:
    """The rows of a fit of the residual, block by block.

    Attributes:
        data: What the linear heads were fitted on.
        slots: Codes per context feature.
        theta: (M, D) coefficients of the linear heads.
        low, high: (V,) first and last knot of each input.
        each: (M,) how much of Σ weight·p(1−p) a row of a sample stands for.
        mass, positives: (M,) weight of all rows, and of the positive ones, for each head.
        dispersion: (M,) by which all that is said of each head is divided.
    """

    data: Blocks[HeadSums]
    slots: tuple[int, ...]
    theta: np.ndarray
    low: np.ndarray
    high: np.ndarray
    each: np.ndarray
    mass: np.ndarray
    positives: np.ndarray
    dispersion: np.ndarray

    @classmethod
    def of(
        cls, data: Blocks[HeadSums], slots: tuple[int, ...], theta: np.ndarray
    ) -> "ResidualBlocks":
        """Take over the rows that linear heads of these coefficients were fitted on."""
        rows = sum(data.each(_rows))
        stride = max(1, rows // _END_ROWS)
        inputs, totals, mass, positives = zip(*data.each(_first, slots, theta, stride), strict=True)
        low, high = _ends(np.concatenate(inputs))
        each = np.sum(totals, axis=0) / min(_SAMPLE, rows)
        ones = np.ones(len(theta))
        weights = np.sum(mass, axis=0), np.sum(positives, axis=0)
        return cls(data, slots, theta, low, high, each, *weights, ones)

    @property
    def _given(self) -> tuple[Any, ...]:
        return self.slots, self.theta, self.low, self.high, self.each

    def looks(self, groups: list[Group]) -> list[Look]:
        """Look at every head and all groups once."""
        periods, *bands = self.data.total(_looked, *self._given, groups)
        M = len(self.theta)
        return [
            Look(np.ascontiguousarray(periods[:, :, m]) / d, blocks_of(groups, bands[m] / d))
            for m, d in zip(range(M), self.dispersion, strict=True)
        ]

    def answers(self, asks: list[Ask]) -> list[Answer]:
        """Answer questions about different heads with one pass over the rows."""
        if not asks:
            return []
        sums = iter(self.data.total(_answered, *self._given, asks))
        answers = []
        for ask in asks:
            d = self.dispersion[ask.head]
            value, gradient = float(next(sums) / d), next(sums) / d
            curvature = None if ask.curved is None else next(sums) / d
            answers.append(Answer(value, gradient, curvature))
        return answers


def _rows(data: HeadSums) -> int:
    return int(data.away.shape[1])


def _first(
    data: HeadSums, slots: tuple[int, ...], theta: np.ndarray, stride: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return some inputs, Σ weight·p(1−p) of every head, and the weight of rows and positives."""
    ones = np.ones(2 * len(theta) + 1)
    rows = ResidualRows.of(data, slots, theta, -ones, ones)
    some, weight = rows.inputs[::stride].copy(), data.weight.astype(np.float64)
    if weight.ndim == 2:
        return some, rows.totals(), weight.sum(axis=1), (data.labels * weight).sum(axis=1)
    mass = np.full(len(theta), weight.sum())
    return some, rows.totals(), mass, data.labels @ weight


def _looked(
    data: HeadSums,
    slots: tuple[int, ...],
    theta: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    each: np.ndarray,
    groups: list[Group],
) -> tuple[np.ndarray, ...]:
    rows = ResidualRows.of(data, slots, theta, low, high)
    bands: list[np.ndarray] = []
    for m, every in enumerate(each):
        drawn = rows.sample(rows.heads[:, m], every, m)
        bands.append(rows.bands(groups, *drawn))
    return (rows.look(groups), *bands)


def _answered(
    data: HeadSums,
    slots: tuple[int, ...],
    theta: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    each: np.ndarray,
    asks: list[Ask],
) -> tuple[Any, ...]:
    rows = ResidualRows.of(data, slots, theta, low, high)
    logits, sums = np.empty(len(rows.heads), np.float32), []
    for ask in asks:
        sums += [*rows.at(ask.head, ask.groups, ask.theta, logits)]
        if ask.curved is not None:
            size = 2 + len(theta) + sum(group.size for group in ask.curved)
            drawn = rows.sample(logits, each[ask.head], ask.head)
            sums.append(rows.curvature(ask.head, ask.curved, size, *drawn))
    return tuple(sums)


def _ends(inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last knot of each input: extreme quantiles."""
    low, high = np.quantile(inputs, _ENDS, axis=0)
    # An input that hardly varies gets a knot to either side, so that no width is 0.
    flat = high - low < 1e-6
    return np.where(flat, low - 1.0, low), np.where(flat, high + 1.0, high)
