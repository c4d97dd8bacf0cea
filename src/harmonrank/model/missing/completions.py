"""Completions: rows with missing coordinates as several whole rows each, to fit heads on.

The likelihood of a label given what is there is the head's, averaged over what is missing. Its
expectation and maximisation by the method of weights (Ibrahim, 1990): each row stands for draws of
what is missing given the rest, and each draw counts by how well it explains the row's labels under
the present heads. So a row whose own score is missing teaches the head as much as it can, and the
scale of a coefficient is that of whole rows.
"""

__all__ = ["Completions"]

from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.model.density.density import Density, distinct_contexts
from harmonrank.model.linear.heads import Heads
from harmonrank.model.linear.heads_sums import HeadSums
from harmonrank.model.missing.gaps import Gaps
from harmonrank.model.scorer.heads_score import HeadScorer
from harmonrank.support.kernel import kernel
from harmonrank.support.logistic import log_likelihoods, sigmoid

# Draws per row: a few correct the bias of one, and rows take as much memory each.
_DRAWS, _FEWER_DRAWS = 8, 4
_MANY = 500_000


@dataclass(frozen=True)
class Completions:
    """Whole rows, those of one row beside each other, in the order of the log.

    Attributes:
        row: (completions,) which row each one completes.
        coordinates: (completions, M) coordinates.
        weight: (completions,) what each would count without a look at the labels.
        means: (rows, M) coordinates, those that are missing by their conditional mean.
    """

    row: np.ndarray
    coordinates: np.ndarray
    weight: np.ndarray
    means: np.ndarray

    @classmethod
    def of(
        cls,
        coordinates: np.ndarray,
        density: Density,
        codes: np.ndarray,
        slots: tuple[int, ...],
        weight: np.ndarray | None,
        *,
        incomplete: int | None = None,
        seed: int = 0,
    ) -> "Completions":
        """Draw what is missing among (rows, M) coordinates; the same each time.

        Args:
            coordinates: NaN where one is missing.
            density: Of the coordinates.
            codes: (rows, features) of the context.
            slots: Codes per feature.
            weight: (rows,).
            incomplete: How many rows miss something, where these are some rows of a log.
            seed: Of the draws, another one for other rows of the log.
        """
        contexts, of_row = distinct_contexts(codes, slots)
        gaps = Gaps.of(coordinates, of_row)
        incomplete = len(gaps.rows) if incomplete is None else incomplete
        draws = _DRAWS if incomplete * _DRAWS <= _MANY else _FEWER_DRAWS
        copies = np.ones(len(coordinates), np.int64)
        copies[gaps.rows] = draws
        row, first = np.repeat(np.arange(len(coordinates)), copies), np.cumsum(copies) - copies
        means = coordinates.copy()
        gaps.fill(means, density, contexts)
        filled = means[row]
        rng = np.random.default_rng(seed)
        for block, part in gaps.blocks():
            rows = gaps.rows[part]
            root = gaps.conditional(density, contexts, block).root * density.scale[:, None]
            pair = gaps.pair[part] - block.start
            z = rng.standard_normal((len(rows), draws // 2, coordinates.shape[1]))
            _spread_out(first[rows], pair, root, z, filled)
        w = np.ones(len(coordinates)) if weight is None else weight
        return cls(row, filled, (w / copies)[row], means)

    def weights(
        self,
        heads: Heads,
        codes: np.ndarray,
        labels: np.ndarray,
        shares: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return what each completion counts, given the labels of its row under these heads.

        Args:
            heads: The present ones.
            codes: (rows, features) of the context.
            labels: (rows, M) from 0 to 1.
            shares: (rows, M) what each label counts; all the same if left out.
        """
        scores = sigmoid(heads.coordinate.inverse(self.coordinates))
        p = HeadScorer(heads).probabilities(scores, codes[self.row])
        each = log_likelihoods(p, labels[self.row])
        fit = (each if shares is None else shares[self.row] * each).sum(axis=1)
        starts = np.flatnonzero(np.diff(self.row, prepend=-1))
        fit = np.exp(fit - np.maximum.reduceat(fit, starts)[self.row])
        mean = np.add.reduceat(fit, starts) / np.diff(starts, append=len(fit))
        weights: np.ndarray = self.weight * fit / mean[self.row]
        return weights

    def sums(
        self,
        density: Density,
        codes: np.ndarray,
        slots: tuple[int, ...],
        labels: np.ndarray,
        weight: np.ndarray,
        period: np.ndarray | None = None,
        shares: np.ndarray | None = None,
    ) -> HeadSums:
        """Return what heads are fitted on: completions that count so much each."""
        row = self.row
        if shares is not None:
            weight = weight[:, None] * shares[row]
        given = codes[row], slots, labels[row], weight, period
        return HeadSums.of(density, self.coordinates, *given)


@kernel
def _spread_out(first: Any, pair: Any, root: Any, z: Any, coordinates: Any) -> None:
    """Add a draw to each completion of each row, and its mirror image, which keeps the mean."""
    n, half, M = z.shape
    for i in range(n):
        for k in range(half):
            for m in range(M):
                away = 0.0
                for j in range(m + 1):
                    away += root[pair[i], m, j] * z[i, k, j]
                coordinates[first[i] + 2 * k, m] += away
                coordinates[first[i] + 2 * k + 1, m] -= away
