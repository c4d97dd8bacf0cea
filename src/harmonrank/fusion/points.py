"""Operating points: named objective weights that are kept with a model."""

__all__ = ["Points", "checked_point", "point_of", "with_points_of"]

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from msgspec import Meta

from harmonrank.data import Schema
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


def with_points_of(model: M, other: "Method") -> M:
    """Return a model with the operating points of one of the same objectives as well.

    Its own points win. A method that can have none, or has other objectives, stays as it is.
    """
    if not model.traits.probabilities or model.schema.names != other.schema.names:
        return model
    return model.with_fitted(model.fitted.with_points({**other.points, **model.points}))
