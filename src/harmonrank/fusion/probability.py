"""Methods that estimate the probability of each objective and weight them in the best way."""

__all__ = ["ProbabilityMethod", "weighted_sum"]

from abc import abstractmethod
from collections.abc import Mapping
from math import fsum

import numpy as np

from harmonrank.data import Log, Source
from harmonrank.fusion.base import Method
from harmonrank.fusion.kinds import fused_terms, kinds_of

_MEAN_ROWS = 200_000  # whose labels tell the mean of a graded objective


class ProbabilityMethod(Method):
    """Fuses s = Σ_m w_m p_m/(π_m(1−π_m)), eq. 10 of docs/default-method.md; a subclass gives p.

    With the true probabilities this is the best score there is for Σ_m w_m AUC_m. The weights
    enter after the fit, so they can be changed without another one. With values v_m per event in
    place of weights it is the expected value Σ_m v_m p_m of a row.
    """

    gives_probabilities = True

    def probabilities(self, table: Source) -> np.ndarray:
        """Return the calibrated probability of each objective, (rows, objectives).

        Of a conditional objective it is the one given what it is given; of a graded objective the
        expected label, in its own units.
        """
        log = self._to_score(table)
        if not log.rows:
            return np.empty((0, len(self.schema.names)))
        heads = self._probabilities(self._expected(log))
        return heads if self._kinds is None else self._kinds.amounts(self.schema, heads)

    def gains(self, table: Source, weights: np.ndarray) -> np.ndarray:
        """Return what a unit of weight adds to each row, (rows, M): Σ_m w_m gains_m is the score.

        p_m/(π_m(1−π_m)) of plain events. Whether a conditional objective is alone decides about
        its gains, so that they depend on which weights are 0.
        """
        log, even = self._to_score(table), np.ones(len(weights))
        if self._kinds is None:
            return self.parts_of(self.probabilities(log), even)
        heads = self._probabilities(self._expected(log))
        found: np.ndarray = self._terms(heads, weights) * self._per_unit(even)
        return found

    def contributions(
        self,
        table: Source,
        *,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
    ) -> np.ndarray:
        """Return what each objective adds to the fused score of each row, (rows, objectives).

        w_m p_m/(π_m(1−π_m)), or v_m p_m with values. A row adds up to its score exactly: the sum,
        rounded once (`math.fsum`), is the score to the last bit. Where a cost takes most of it
        away again, a score has finer digits than its parts, whose last digit then is the limit.
        """
        log, asked = self._to_score(table), self._asked(weights, value)
        merged = self.objective_weights() if asked is None else asked
        if not log.rows:
            return np.empty((0, len(self.schema.names)))
        if self._kinds is None:
            parts = self.parts_of(self.probabilities(log), merged)
        else:
            parts = self.gains(log, merged) * merged
        if log.rows:
            _add_up(parts, self._fused(self._expected(log), asked))
        return parts

    def parts_of(self, p: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return what each objective adds to the score of rows with these probabilities, (rows, M).

        Args:
            p: (rows, M), of `probabilities`.
            weights: (M,), of `objective_weights`.
        """
        heads = p if self._kinds is None else self._kinds.heads(self.schema, p)
        parts: np.ndarray = self._terms(heads, weights) * self._per_unit(weights)
        return parts

    @abstractmethod
    def _probabilities(self, log: Log) -> np.ndarray:
        """Return the probabilities of checked rows."""

    def _score(self, log: Log) -> np.ndarray:
        return self._score_weighted(log, self.objective_weights())

    def _score_weighted(self, log: Log, weights: np.ndarray) -> np.ndarray:
        return weighted_sum(self._terms(self._probabilities(log), weights), self._per_unit(weights))

    def _terms(self, heads: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return what effective weights multiply: the heads, where all objectives are events."""
        if self._kinds is None:
            return heads
        return fused_terms(self.schema, heads, self.prevalence, self._kinds, weights)

    def _learn_kinds(self, train: Log, targets: Log, shown: np.ndarray | None = None) -> None:
        if not train.schema.graded:
            self._kinds = kinds_of(train, None, shown)
            return
        some = train.drawn(_MEAN_ROWS)
        train, targets = train.take(some), targets.take(some)
        self._kinds = kinds_of(train, self._probabilities(targets))


def weighted_sum(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return columns @ weights, added column by column.

    A matrix product may add in another order when there are other rows beside; a row's score must
    not depend on them in its last digit.

    >>> weighted_sum(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))
    array([11.])
    """
    total = np.zeros(len(columns))
    for column, weight in zip(columns.T, weights, strict=True):
        total += weight * column
    return total


def _add_up(parts: np.ndarray, totals: np.ndarray) -> None:
    """Let each row add up to its total, from which it is a few roundings away."""
    for row, total in zip(parts, totals.tolist(), strict=True):
        size = np.abs(row)
        # On a small part, which is rounded finely; one that is next to nothing would be changed.
        least = int(np.where(size >= 1e-6 * size.max(), size, np.inf).argmin())
        for _ in range(3):
            left = fsum([total, *(-row).tolist()])
            if left == 0.0 or fsum(row.tolist()) == total:
                break
            row[least] += left
