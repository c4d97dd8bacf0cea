"""RunningAuc: the AUC of rows that come in the order of their scores, some at a time."""

__all__ = ["RunningAuc"]

import numpy as np
from numpy.typing import ArrayLike

from harmonrank.metrics._auc import mid_ranks, pair_share, rank_sums
from harmonrank.metrics._inputs import FloatArray, check_inputs, sorting_order


class RunningAuc:
    """Adds up what `auc` needs, of rows whose scores all exceed those of the rows before.

    A row's rank is its rank among those that it comes with, plus the weight of all before. So the
    AUC of any number of rows is exact, with some of them in memory at a time.

    >>> running = RunningAuc(1)
    >>> running.add(np.array([0.2, 0.1]), np.array([[1], [0]]))
    >>> running.add(np.array([0.8, 0.4]), np.array([[1], [0]]))
    >>> running.areas()
    array([0.75])
    """

    def __init__(self, objectives: int) -> None:
        self._below = 0.0
        self._sums, self._positive, self._negative = np.zeros((3, objectives))

    def add(
        self, scores: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> None:
        """Add rows, as `auc` takes them; none of their scores is that of a row before."""
        values, table, weights = check_inputs(scores, labels, sample_weight)
        ranks = mid_ranks(values, sorting_order(values), weights)
        mass = float(weights.sum()) if weights.size else float(len(values))
        sums, positive, negative = rank_sums(ranks, table, weights)
        self._sums += sums + positive * (self._below + mass / 2)
        self._count(mass, positive, negative)

    def add_tied(self, mass: float, positive: FloatArray) -> None:
        """Add rows of one score by their weight and (objectives,) that of their positives."""
        self._sums += positive * (self._below + mass / 2)
        self._count(mass, positive, mass - positive)

    def _count(self, mass: float, positive: FloatArray, negative: FloatArray) -> None:
        self._positive += positive
        self._negative += negative
        self._below += mass

    def areas(self) -> FloatArray:
        """Return the AUC of every objective; nan without a positive or without a negative."""
        centred = self._sums - self._positive * (self._below / 2)
        return pair_share(centred, self._positive, self._negative)
