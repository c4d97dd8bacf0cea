"""Outcomes: labels of every kind, and how each kind is measured."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from harmonrank.metrics._inputs import FloatArray, IntArray, LabelArray, check_weights
from harmonrank.support.errors import UsageError


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Labels of all kinds of objectives; every metric of pairs accepts it in place of labels.

    An objective is measured by AUC on 0/1 labels (or true chances), by concordance where it is
    graded, and over the rows that show it where it is conditional.

    Attributes:
        values: (n, M) labels; of a graded objective numbers in its own units.
        graded: (M,) which objectives are.
        shown: (n, M) whether each row shows each objective, 1 or 0, or in a simulated world the
            chance that it does; None if all rows show all objectives.
        draws: By column, (n, K) equally likely values of a graded objective, known in a simulated
            world.
    """

    values: LabelArray
    graded: NDArray[np.bool_]
    shown: LabelArray | None = None
    draws: Mapping[int, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or len(self.graded) != self.values.shape[1]:
            raise UsageError(
                "Outcomes need `values` of shape (rows, objectives) and one `graded` per "
                f"objective. Got {self.values.shape} and {len(self.graded)}."
            )

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def objectives(self) -> int:
        """How many there are."""
        return int(self.values.shape[1])

    def columns(self, chosen: Iterable[int]) -> Self:
        """Return some objectives, in this order."""
        kept = list(chosen)
        shown = None if self.shown is None else self.shown[:, kept]
        draws = {new: self.draws[old] for new, old in enumerate(kept) if old in self.draws}
        return type(self)(self.values[:, kept], self.graded[kept], shown, draws)

    def special(self, m: int) -> bool:
        """Tell whether an objective is graded or conditional."""
        return bool(self.graded[m]) or (
            self.shown is not None and not (self.shown[:, m] == 1).all()
        )

    def events(self) -> FloatArray:
        """Return the events of each row, (n, M): the label, times the share that was shown."""
        values = self.values.astype(np.float64)
        for m, density in self.draws.items():
            values[:, m] = density.mean(axis=1)
        return values if self.shown is None else values * self.shown

    def one(self, m: int, sample_weight: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the rows that show objective m, with their labels and weights.

        A row whose density is known stands once for each of its values.

        Args:
            m: The objective.
            sample_weight: (n,), or empty for all ones.
        """
        weight = sample_weight if sample_weight.size else np.ones(len(self))
        if self.shown is not None:
            weight = weight * self.shown[:, m]
        rows = np.flatnonzero(weight > 0)
        if m in self.draws:
            density = self.draws[m][rows]
            K = density.shape[1]
            return np.repeat(rows, K), density.reshape(-1), np.repeat(weight[rows] / K, K)
        return rows, self.values[rows, m].astype(np.float64), weight[rows]


def each_part(
    outcomes: Outcomes,
    sample_weight: Any,
    plain: Callable[[LabelArray], FloatArray],
    special: Callable[[int, IntArray, FloatArray, FloatArray], Any],
    result: FloatArray,
) -> FloatArray:
    """Fill a result whose last axis is objectives: plain ones in one call, others one by one.

    Args:
        outcomes: Of all objectives.
        sample_weight: (n,) or None.
        plain: Measures 0/1 labels that all rows show, (n, some).
        special: Measures one other objective, given its number and its rows, labels and weights.
        result: (…, M), is filled.
    """
    weights = check_weights(sample_weight, len(outcomes))
    others = [m for m in range(outcomes.objectives) if outcomes.special(m)]
    usual = [m for m in range(outcomes.objectives) if m not in others]
    if usual:
        result[..., usual] = plain(np.ascontiguousarray(outcomes.values[:, usual]))
    for m in others:
        result[..., m] = special(m, *outcomes.one(m, weights))
    return result
