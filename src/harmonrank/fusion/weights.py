"""Weights: what each objective counts in a fused score, on its AUC or by the worth of an event."""

__all__ = ["Weights", "fit_weights", "weighted_sum"]

from dataclasses import dataclass

import numpy as np

from harmonrank.data import Schema
from harmonrank.fusion.kinds import Kinds, expected_of, terms_of


@dataclass(frozen=True, eq=False)
class Weights:
    """w_m, what the AUC of each objective counts.

    A value v_m per event is the weight v_m π_m(1−π_m), since the fused score of weights w_m is
    Σ_m w_m p_m/(π_m(1−π_m)). Of graded and conditional objectives a value multiplies what is
    expected, and a weight on a rank does not; of others both are the same score.

    Attributes:
        counted: (M,).
        by_value: Whether they stand for values.
    """

    counted: np.ndarray
    by_value: bool = False

    def per_unit(self, prevalence: np.ndarray) -> np.ndarray:
        """Return what a unit of each objective's probability counts, (M,)."""
        counted: np.ndarray = self.counted / (prevalence * (1 - prevalence))
        return counted

    def terms(
        self, schema: Schema, heads: np.ndarray, prevalence: np.ndarray, kinds: Kinds | None
    ) -> np.ndarray:
        """Return what the numbers of `per_unit` multiply, (rows, M): probabilities of events."""
        if kinds is None:
            return heads
        if self.by_value:
            return expected_of(schema, heads, kinds)
        return terms_of(schema, heads, prevalence, kinds, self.counted)


def fit_weights(schema: Schema, pi: np.ndarray) -> np.ndarray:
    """Return what each objective's AUC counts in the fit, given how common objectives are."""
    value = schema.values_with(None)
    return schema.weight_vector if value is None else value * pi * (1 - pi)


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
