"""Weights: what each objective counts in a fused score, by a call, or by a model's named points."""

__all__ = [
    "Points",
    "Weights",
    "checked_point",
    "fit_weights",
    "point_of",
    "weighted_sum",
]

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from msgspec import Meta

from harmonrank.data import Schema
from harmonrank.fusion.kinds import Kinds, expected_of, terms_of
from harmonrank.support.errors import UsageError, did_you_mean, shown

if TYPE_CHECKING:
    from harmonrank.fusion.method import Method

M = TypeVar("M", bound="Method")

_NAME = re.compile(r"\w[\w.-]{0,63}")
_MOST_POINTS = 1000

PointName = Annotated[str, Meta(min_length=1, max_length=64)]
PointWeight = Annotated[float, Meta(ge=-1e100, le=1e100)]
Points = Annotated[dict[PointName, dict[str, PointWeight]], Meta(max_length=_MOST_POINTS)]
"""The weights of the objectives, by the name of the point."""


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


def checked_point(
    schema: Schema, name: Any, weights: Mapping[str, float]
) -> tuple[str, dict[str, float]]:
    """Return the name of a point and the weight of every objective there.

    >>> checked_point(Schema({"buy": "p_buy", "like": "p_like"}), "sales", {"buy": 3})
    ('sales', {'buy': 3.0, 'like': 1.0})

    Raises:
        UsageError: The name is no plain word, or a weight is not one that objectives can have.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            "An operating point is named by up to 64 letters, digits, '.', '-' and '_', such as "
            f"sales. Got {shown(name)}."
        )
    vector = schema.weights_with(weights)
    return name, dict(zip(schema.names, vector.tolist(), strict=True))


def point_of(points: Mapping[str, Mapping[str, float]], name: str) -> dict[str, float]:
    """Return the weights of a point; refuse one that is not there."""
    if name not in points:
        hint = did_you_mean(name, points) if points else "There are none."
        raise UsageError(f"There is no operating point '{name}'. {hint}")
    return dict(points[name])
