"""What an event is worth: the values by which a ranking can be made and measured."""

__all__ = ["either", "refuse_gains", "value_vector"]

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from harmonrank.support.errors import UsageError, did_you_mean, shown

_LARGEST_VALUE = 1e100


def value_vector(
    names: Sequence[str], value: Mapping[str, Any], changes: Mapping[str, Any] | None = None
) -> np.ndarray:
    """Return what an event of each objective is worth, after some values are changed.

    An objective that is not named is worth nothing; a negative value is a cost.

    >>> value_vector(["click", "follow", "report"], {"click": 1, "report": -20}, {"follow": 10})
    array([  1.,  10., -20.])

    Raises:
        UsageError: An objective is unknown, a value is no finite number, or all are 0.
    """
    merged = dict(value)
    for name, worth in _mapping(changes).items():
        if name not in names:
            hint = did_you_mean(name, names)
            raise UsageError(f"`value` names an unknown objective '{name}'. {hint}")
        merged[name] = _number(name, worth)
    vector = np.array([float(merged.get(name, 0.0)) for name in names])
    if not vector.any():
        raise UsageError("At least one objective needs a value other than 0. Got 0 for each.")
    return vector


def refuse_gains(unwanted: Sequence[str], worth: np.ndarray, names: Sequence[str]) -> None:
    """Refuse an unwanted objective whose events are worth something."""
    for name, each in zip(names, worth.tolist(), strict=True):
        if name in unwanted and each > 0:
            raise UsageError(
                f"'{name}' is unwanted, so an event of it must be worth 0 or less, as in "
                f"{name}={-each:g}. Got {each:g}."
            )


def either(weights: object, value: object, what: str = "`weights` or `value`") -> None:
    """Refuse weights on AUC together with values per event: a score follows one of them."""
    if weights is not None and value is not None:
        raise UsageError(f"Give either {what}, not both: weights count AUCs, values count events.")


def _mapping(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(
            f"`value` must map objectives, as in {{'follow': 10.0}}. Got {shown(value)}."
        )
    return dict(value)


def _number(name: str, worth: Any) -> float:
    worth = worth.item() if isinstance(worth, np.generic) else worth
    if isinstance(worth, bool) or not isinstance(worth, int | float) or not isfinite(worth):
        raise UsageError(f"The value of '{name}' must be a finite number. Got {shown(worth)}.")
    if abs(worth) > _LARGEST_VALUE:
        raise UsageError(
            f"The value of '{name}' must be at most {_LARGEST_VALUE:g} in size, so that fused "
            f"scores stay finite. Got {shown(worth)}; only ratios of values count."
        )
    return float(worth)
