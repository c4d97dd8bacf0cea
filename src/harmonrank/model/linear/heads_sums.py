"""Sums of the heads: gradient and curvature of all their likelihoods in one pass over the rows.

Given its context every number that a head looks at is linear in a = (1, away), the row's deviations
from its context's mean: x = T(c, m) a. So a pass adds up Σ g a and Σ h a aᵀ per context, with
g = y − p and h = p(1−p), and T turns these few sums into those of x: eq. 6 of
docs/default-method.md. Rows are kept in the order of their contexts, which makes all loops run over
neighbouring floats.

Of a context with few rows T would cost more than it saves. Such contexts come last, and the sums of
x itself are added up row by row (`RowSums`): a million contexts of one row each cost no more than
the rows do, and nothing is kept of a context but its codes, mean and variances.
"""

__all__ = ["PERIODS", "HeadSums", "periods_of"]

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harmonrank.model.density.density import Density, blocks_of, distinct_contexts
from harmonrank.model.linear.head_columns import (
    BY_CONTEXT,
    INTERCEPT,
    MEAN,
    OWN,
    SURPRISE,
    HeadColumns,
)
from harmonrank.model.linear.heads_sums_kernels import (
    RUN_ROWS,
    add_runs,
    add_to_contexts,
    fold_contexts,
    put,
    write_logits,
)
from harmonrank.model.linear.row_sums import RowSums, log_losses, surprises
from harmonrank.support.newton import Likelihood
from harmonrank.support.parallel import each_part

PERIODS = 8
"""So many parts of the log, one after the other, are asked whether they agree."""

_CHUNK_ROWS = 8192  # Whose intermediate results stay in a near cache.
# A context with so many rows per objective, or more, is added up as a whole.
_MANY_ROWS = 3


def periods_of(number: np.ndarray, rows: int) -> np.ndarray:
    """Return the period of each row, by its number in a log of so many."""
    periods: np.ndarray = (number * PERIODS // rows).astype(np.uint8)
    return periods


@dataclass(frozen=True)
class HeadSums:
    """The rows, in the order of their contexts, those with few rows last.

    Attributes:
        density: Of the coordinates.
        contexts: (contexts, features) distinct codes.
        common: How many of them have many rows; these come first.
        away: (M, rows) deviations from the context's mean in standard deviations, float32.
        labels: (M, rows), float32.
        weight: (rows,), or (M, rows) where rows count differently for each head; float32.
        period: (rows,) which of the `PERIODS` of the log a row belongs to, uint8.
        run_start: Where each run of rows begins, and the end; a run has one context.
        run_context: The context of each run.
        mean, variance: (common, M), in standard deviations, of contexts with many rows.
        surprised: (M, rows of contexts with few) the surprise of each, float32.
        few: (3, M, contexts with few rows) what `RowSums` keeps of them.
    """

    density: Density
    contexts: np.ndarray
    common: int
    away: np.ndarray
    labels: np.ndarray
    weight: np.ndarray
    period: np.ndarray
    run_start: np.ndarray
    run_context: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    surprised: np.ndarray
    few: np.ndarray

    @classmethod
    def of(
        cls,
        density: Density,
        coordinates: np.ndarray,
        codes: np.ndarray,
        slots: tuple[int, ...],
        labels: np.ndarray,
        weight: np.ndarray | None,
        period: np.ndarray | None = None,
    ) -> "HeadSums":
        """Put the rows into the order of their contexts.

        These rows, as they come, are the whole log where nothing is said of periods.
        Weights are (rows,), or (rows, M) where they differ by head.
        """
        contexts, of_row, common = _few_last(*distinct_contexts(codes, slots), coordinates.shape[1])
        order = np.argsort(of_row.astype(np.min_scalar_type(len(contexts))), kind="stable")
        deviation = np.sqrt(np.exp(density.log_variance))
        away = np.empty(coordinates.T.shape, np.float32)
        answers = np.empty(labels.T.shape, np.float32)
        unit = 1 / (density.scale * deviation)
        put(coordinates, labels, of_row, order, density.centre_of(contexts), unit, away, answers)
        run_start, run_context = _runs(np.bincount(of_row, minlength=len(contexts)))
        w = np.ones(len(coordinates), np.float32) if weight is None else weight[order].T
        many, context = _context_of_few(run_start, run_context, common)
        return cls(
            density,
            contexts,
            common,
            away,
            answers,
            np.ascontiguousarray(w, np.float32),
            periods_of(order, len(order)) if period is None else period[order],
            run_start,
            run_context,
            density.mean_of(contexts[:common]) / deviation,
            density.variance_of(contexts[:common]) / np.exp(density.log_variance),
            *surprises(density, contexts[common:], context, many, away),
        )

    @property
    def few_rows(self) -> RowSums:
        """The rows of contexts with few rows."""
        many, context = _context_of_few(self.run_start, self.run_context, self.common)
        return RowSums(
            len(self.density.mean),
            many,
            context,
            self.density.first + self.contexts[self.common :],
            self.few,
            self.away,
            self.surprised,
            self.labels,
            np.atleast_2d(self.weight),
        )

    def surprise(self, block: slice) -> np.ndarray:
        """Return what turns away into surprise in some contexts, (contexts, M, M)."""
        deviation = np.sqrt(np.exp(self.density.log_variance))
        # In units of deviations the surprise is C⁻¹ scaled on both sides.
        return self.density.precision_of(self.contexts[block]) * np.outer(deviation, deviation)

    def blocks(self, numbers: int) -> Iterator[tuple[slice, slice]]:
        """Cut contexts with many rows so that `numbers` of each stay within bounds.

        Yields:
            Contexts, and their runs.
        """
        for block in blocks_of(self.common, numbers):
            # Runs are in the order of their contexts.
            yield block, slice(*np.searchsorted(self.run_context, [block.start, block.stop]))

    def likelihood(self, theta: np.ndarray) -> Likelihood:
        """Return the log-likelihoods of all heads.

        Sums over the rows of a context are kept for a block of contexts at a time, and blocks are
        added in order, so that memory is bounded and the result does not depend on the bound.

        Args:
            theta: (M, D) coefficients of every head.
        """
        M, D = theta.shape
        K = HeadColumns(M).width
        likelihood = Likelihood(np.zeros(M), np.zeros((M, D)), np.zeros((M, D, D)))
        value, slopes, curved = likelihood
        for block, runs in self.blocks(M * (M + 1) ** 2):
            surprise = self.surprise(block)
            given = self.affine(theta, block, surprise)
            losses, gradient, curvature = self._sums(block, runs, *given)
            value -= losses
            columns = K + self.density.first + self.contexts[block]  # (contexts, features)

            def fold(m: int) -> None:
                mean, excess = self.mean[block, m], self.variance[block, m] - 1  # noqa: B023
                fold_contexts(
                    m, K, mean, excess, np.ascontiguousarray(surprise[:, m]),  # noqa: B023
                    columns, gradient[m], curvature[m], slopes[m], curved[m],  # noqa: B023
                )  # fmt: skip

            each_part(fold, M)
        curved[:, :K, K:] = np.swapaxes(curved[:, K:, :K], 1, 2)
        self.few_rows.add(theta, likelihood)
        return likelihood

    def _sums(
        self, block: slice, runs: slice, intercept: np.ndarray, slope: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the log losses (M,), Σ g a (M, contexts, 1 + M), and Σ h a aᵀ by context."""
        M = len(self.away)
        pairs = (M + 1) * (M + 2) // 2
        start = self.run_start[runs.start : runs.stop + 1]
        context = self.run_context[runs] - block.start
        of_runs = np.empty((len(context), M, M + 1 + pairs), np.float32)
        weight = np.atleast_2d(self.weight)  # (1 or M, rows)
        cuts = _chunks(start)
        losses = np.zeros((len(cuts) - 1, M))

        def add(chunk: int) -> None:
            low, high = cuts[chunk], cuts[chunk + 1]
            rows = slice(start[low], start[high])
            z = np.empty((M, rows.stop - rows.start), np.float32)
            write_logits(self.away, start, context, low, high, intercept, slope, z)
            e = np.exp(z)  # NumPy's is a vector loop
            losses[chunk] = log_losses(z, e, self.labels[:, rows], weight[:, rows])
            add_runs(self.away, self.labels, weight, start, low, high, e, of_runs)

        each_part(add, len(cuts) - 1)
        contexts = block.stop - block.start
        gradient = np.zeros((M, contexts, M + 1))
        curvature = np.zeros((M, contexts, M + 1, M + 1))
        add_to_contexts(of_runs, context, gradient, curvature)
        return losses.sum(axis=0), gradient, curvature

    def affine(
        self, theta: np.ndarray, block: slice, surprise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return intercepts (contexts, M) and slopes (contexts, M, M) in away of some contexts."""
        M = len(self.away)
        columns = HeadColumns(M)
        effects = self.density.sum_of(theta[:, columns.context].T, self.contexts[block])
        intercept = effects + theta[:, INTERCEPT]
        intercept += (theta[:, OWN] + theta[:, MEAN]) * self.mean[block]
        trust = theta[:, BY_CONTEXT] * (self.variance[block] - 1) + theta[:, SURPRISE]
        slope = trust[:, :, None] * surprise  # (contexts, M, M)
        for m in range(M):
            slope[:, m, m] += theta[m, OWN]
            slope[:, m, columns.other_than(m)] += theta[m, columns.others]
        return intercept.astype(np.float32), slope.astype(np.float32)


def _few_last(
    contexts: np.ndarray, of_row: np.ndarray, M: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Renumber contexts so that those with few rows come last; also return how many do not.

    >>> _few_last(np.array([[7], [8], [9]]), np.array([2, 0, 2, 2]), 1)
    (array([[9],
           [7],
           [8]]), array([0, 1, 0, 0]), 1)
    """
    many = np.bincount(of_row, minlength=len(contexts)) >= _MANY_ROWS * M
    order = np.argsort(~many, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return contexts[order], number[of_row], int(many.sum())


def _runs(rows_of_context: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut sorted rows into runs of one context and not too many rows.

    >>> _runs(np.array([3, 5000]))
    (array([   0,    3, 2051, 4099, 5003]), array([0, 1, 1, 1]))
    """
    pieces = -(-rows_of_context // RUN_ROWS)
    context = np.repeat(np.arange(len(pieces)), pieces)
    first = np.cumsum(rows_of_context) - rows_of_context
    number = np.arange(len(context)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start = np.append(first[context] + number * RUN_ROWS, rows_of_context.sum())
    return start, context


def _context_of_few(
    run_start: np.ndarray, run_context: np.ndarray, common: int
) -> tuple[int, np.ndarray]:
    """Return where rows of contexts with few rows begin, and which of these contexts each has.

    >>> _context_of_few(np.array([0, 4, 6, 7]), np.array([0, 1, 2]), 1)
    (4, array([0, 0, 1]))
    """
    first = int(np.searchsorted(run_context, common))
    each = np.repeat(run_context[first:] - common, np.diff(run_start[first:]))
    return int(run_start[first]), each


def _chunks(run_start: np.ndarray) -> np.ndarray:
    """Cut runs into chunks of about `_CHUNK_ROWS` rows; the cuts do not depend on threads."""
    edges = np.arange(0, run_start[-1] + _CHUNK_ROWS, _CHUNK_ROWS)
    return np.unique(np.searchsorted(run_start, edges).clip(0, len(run_start) - 1))
