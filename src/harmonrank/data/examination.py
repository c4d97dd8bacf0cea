"""Examination: the chance that the item at a place is looked at."""

__all__ = ["chances_at", "checked_curve"]

from collections.abc import Mapping
from typing import Any

import numpy as np

from harmonrank.support.errors import UsageError, shown

_LAST_PLACE = 2**31 - 1


def checked_curve(curve: Any) -> dict[int, float]:
    """Return the chance of each listed place, in the order of places.

    >>> checked_curve({"2": 0.6, "1": 1})
    {1: 1.0, 2: 0.6}

    Raises:
        UsageError: A place is no whole number from 0 up, or a chance is not in (0, 1].
    """
    if not isinstance(curve, Mapping):
        raise UsageError(
            f"`examination` must map places to chances, as in {{1: 1.0, 2: 0.6}}. "
            f"Got {shown(curve)}."
        )
    found: dict[int, float] = {}
    for key, value in curve.items():
        place = _place(key)
        chance = value.item() if isinstance(value, np.generic) else value
        number = isinstance(chance, int | float) and not isinstance(chance, bool)
        if not number or not 0 < chance <= 1:
            raise UsageError(
                f"The examination of place {place} must be a chance above 0 and up to 1. "
                f"Got {shown(value)}."
            )
        if place in found:
            raise UsageError(f"`examination` lists place {place} twice; list each once.")
        found[place] = float(chance)
    return dict(sorted(found.items()))


def chances_at(curve: Mapping[int, float], places: np.ndarray) -> np.ndarray:
    """Return the chance that each place is looked at.

    A place that is not listed has the chance of the one before it, and a place before the first
    that of the first.

    >>> chances_at({1: 1.0, 2: 0.6, 5: 0.3}, np.array([0, 1, 2, 4, 5, 99]))
    array([1. , 1. , 0.6, 0.6, 0.3, 0.3])
    """
    listed, chance = np.array(list(curve)), np.array(list(curve.values()))
    found: np.ndarray = chance[np.maximum(np.searchsorted(listed, places, side="right") - 1, 0)]
    return found


def _place(key: Any) -> int:
    key = key.item() if isinstance(key, np.generic) else key
    text = key if isinstance(key, str) else str(key)
    whole = not isinstance(key, bool) and text.isascii() and text.isdigit() and len(text) <= 10
    if not whole or int(text) > _LAST_PLACE:
        raise UsageError(
            f"The places of `examination` must be whole numbers from 0 up. Got {shown(key)}."
        )
    return int(text)
