"""Sums of rows whose contexts have few rows each, added up row by row, all heads at once.

Of such rows the surprise is kept, which is computed once: the matrix that gives it belongs to a
context, takes M³ operations, and would serve a row or two.
"""

__all__ = ["RowSums", "log_losses", "surprises"]

from dataclasses import dataclass

import numpy as np

from harmonrank.model.density.density import Density, blocks_of
from harmonrank.model.linear.head_columns import HeadColumns
from harmonrank.model.linear.row_sums_kernels import (
    SIDE,
    add_tiles,
    put_surprise,
    write_inputs,
    write_row_logits,
)
from harmonrank.support.newton import Likelihood
from harmonrank.support.parallel import each_part


def surprises(
    density: Density, contexts: np.ndarray, context: np.ndarray, skip: int, away: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the surprise of every row, (M, rows), and what is kept of contexts, `RowSums.few`.

    Args:
        density: Of the coordinates.
        contexts: (contexts, features) codes.
        context: (rows,) which of them each row has, ascending.
        skip: How many rows come before these in `away`.
        away: (M, all rows) deviations from the context's mean, in standard deviations.
    """
    M, base = len(away), np.exp(density.log_variance)
    deviation = np.sqrt(base)
    surprise = np.empty((M, len(context)), np.float32)
    few = np.empty((3, M, len(contexts)), np.float32)
    few[0] = (density.mean_of(contexts) / deviation).T
    few[1] = (density.variance_of(contexts) / base - 1).T
    parts = list(blocks_of(len(contexts), M * M))

    def put(number: int) -> None:
        part = parts[number]
        # In units of deviations the surprise is C⁻¹ scaled on both sides.
        matrix = density.precision_of(contexts[part]) * np.outer(deviation, deviation)
        few[2, :, part] = 1 / np.sqrt(np.einsum("cmm->mc", matrix))
        low, high = np.searchsorted(context, [part.start, part.stop])
        put_surprise(matrix, context, low, high, part.start, skip, away, surprise)

    each_part(put, len(parts))
    return surprise, few


@dataclass(frozen=True)
class RowSums:
    """Rows of contexts with few rows each.

    Attributes:
        slots: How many context values there are in all.
        first: How many rows come before these in `away`, `labels` and `weight`.
        context: (rows,) which context each has.
        columns: (contexts, features) the number of each feature's value among all values.
        few: (3, M, contexts) mean and variance less 1, in standard deviations, and what makes the
            surprise one of variance 1, float32.
        away: (M, all rows) deviations from the context's mean, float32.
        surprise: (M, rows), float32.
        labels: (M, all rows), float32.
        weight: (1 or M, all rows), float32.
    """

    slots: int
    first: int
    context: np.ndarray
    columns: np.ndarray
    few: np.ndarray
    away: np.ndarray
    surprise: np.ndarray
    labels: np.ndarray
    weight: np.ndarray

    def logits(self, m: int, theta: np.ndarray) -> np.ndarray:
        """Return the logit of head m with these coefficients for every row, float32."""
        z = np.empty(len(self.context), np.float32)
        write_row_logits(m, theta[m], self.given, HeadColumns(len(theta)).width + self.columns, z)
        return z

    @property
    def given(self) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What kernels are told of the rows."""
        return self.first, self.away, self.surprise, self.context, self.few

    def _weight_of(self, m: int) -> np.ndarray:
        weight: np.ndarray = self.weight[min(m, len(self.weight) - 1)]
        return weight

    def add(self, theta: np.ndarray, likelihood: Likelihood) -> None:
        """Add values, gradients and negative Hessians to those of other rows."""
        if not len(self.context):
            return
        (value, slopes, curved), K = likelihood, HeadColumns(len(self.away)).width
        wide = -(-K // SIDE) * SIDE  # What is beyond the last column is never looked at.

        def add(m: int) -> None:
            corner, pairs = np.zeros((K, wide)), np.zeros((self.slots, self.slots))
            of_slot = np.zeros((self.slots, K + 1))
            z = self.logits(m, theta)
            e = np.exp(np.negative(z, out=z))  # NumPy's is a vector loop
            labels, weight = self.labels[m], self._weight_of(m)
            value[m] -= log_losses(z, e, labels[self.first :], weight[self.first :])
            sums = slopes[m], corner, of_slot, pairs
            add_tiles(m, K, e, self.given, self.columns, labels, weight, sums)
            slopes[m, K:] += of_slot[:, K]
            lower = np.tril(corner[:, :K], -1)
            curved[m, :K, :K] += np.tril(corner[:, :K]) + lower.T
            curved[m, K:, :K] += of_slot[:, :K]
            curved[m, :K, K:] += of_slot[:, :K].T
            curved[m, K:, K:] += pairs + pairs.T + np.diag(of_slot[:, 0])

        each_part(add, len(self.away))

    def write(self, theta: np.ndarray, inputs: np.ndarray, heads: np.ndarray) -> None:
        """Write the residual's inputs, (rows, 2M + 1), and the logits of all heads, (rows, M)."""

        def write(m: int) -> None:
            if m == len(theta):
                write_inputs(self.given, inputs)
            else:
                heads[:, m] = self.logits(m, theta)

        each_part(write, len(theta) + 1)


def log_losses(z: np.ndarray, e: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the log losses of minus the logits, whose exponentials are given, each head's sum."""
    # log σ(−z) = −log(1 + eᶻ), and log(1 − σ(−z)) is −z less.
    losses = weight * (np.log(1 + e) - (1 - labels) * z)
    total: np.ndarray = losses.sum(axis=-1, dtype=np.float64)
    return total
