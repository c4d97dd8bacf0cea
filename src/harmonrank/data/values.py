"""Numbers of a schema: what an AUC or an event counts, and how often a place is looked at."""

__all__ = [
    "LAST_PLACE",
    "chances_at",
    "checked_curve",
    "checked_mapping",
    "either",
    "known_objective",
    "refuse_gains",
    "vector_with",
]

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal

import numpy as np

from harmonrank.support.errors import UsageError, refuse_unknown, shown

_Part = Literal["weights", "value"]
_LARGEST = 1e100
_EXAMPLES = {"weights": "{'buy': 2.0}", "value": "{'buy': 2.0}", "scale": "{'p_buy': 'percent'}"}

LAST_PLACE = 2**31 - 1
"""The last place of a request that a position may be."""


def vector_with(
    part: _Part, names: Sequence[str], known: Mapping[str, Any], changes: Any, missing: float
) -> np.ndarray:
    """Return a number for each objective, after some are changed.

    >>> names = ["click", "follow", "report"]
    >>> vector_with("value", names, {"click": 1, "report": -20}, {"follow": 10}, 0.0)
    array([  1.,  10., -20.])

    Args:
        part: Weights count AUCs, values count events.
        names: The objectives.
        known: The numbers of some.
        changes: Those that are changed.
        missing: The number of an objective that is not named.

    Raises:
        UsageError: An objective is unknown, a number is not finite or too large, or all are 0.
    """
    merged, one = dict(known), part.removesuffix("s")
    for name, number in checked_mapping(part, {} if changes is None else changes).items():
        known_objective(part, name, names)
        merged[name] = _number(one, name, number)
    vector = np.array([float(merged.get(name, missing)) for name in names])
    if not vector.any():
        raise UsageError(f"At least one objective needs a {one} other than 0. Got 0 for each.")
    return vector


def known_objective(part: str, name: str, names: Sequence[str]) -> None:
    """Refuse an objective that is not there."""
    refuse_unknown([name], names, f"`{part}` names an unknown objective '{{}}'.")


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


def checked_mapping(part: str, value: Any) -> dict[str, Any]:
    """Return a part of a schema that must be a mapping."""
    if not isinstance(value, Mapping):
        example = _EXAMPLES.get(part, "{'buy': 'p_buy'}")
        what = "score columns" if part == "scale" else "objectives"
        raise UsageError(f"`{part}` must map {what}, as in {example}. Got {shown(value)}.")
    return dict(value)


def _number(one: str, name: str, number: Any) -> float:
    number = number.item() if isinstance(number, np.generic) else number
    finite = isinstance(number, int) or (isinstance(number, float) and isfinite(number))
    if isinstance(number, bool) or not finite:
        raise UsageError(f"The {one} of '{name}' must be a finite number. Got {shown(number)}.")
    if abs(number) > _LARGEST:
        raise UsageError(
            f"The {one} of '{name}' must be at most {_LARGEST:g} in size, so that fused scores "
            f"stay finite. Got {shown(number)}; only ratios of {one}s count."
        )
    return float(number)


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
    chances: dict[int, float] = {}
    for key, value in curve.items():
        place = _checked_place(key)
        chance = value.item() if isinstance(value, np.generic) else value
        number = isinstance(chance, int | float) and not isinstance(chance, bool)
        if not number or not 0 < chance <= 1:
            raise UsageError(
                f"The examination of place {place} must be a chance above 0 and up to 1. "
                f"Got {shown(value)}."
            )
        if place in chances:
            raise UsageError(f"`examination` lists place {place} twice; list each once.")
        chances[place] = float(chance)
    return dict(sorted(chances.items()))


def chances_at(curve: Mapping[int, float], places: np.ndarray) -> np.ndarray:
    """Return the chance that each place is looked at.

    A place that is not listed has the chance of the one before it, and a place before the first
    that of the first.

    >>> chances_at({1: 1.0, 2: 0.6, 5: 0.3}, np.array([0, 1, 2, 4, 5, 99]))
    array([1. , 1. , 0.6, 0.6, 0.3, 0.3])
    """
    listed, chance = np.array(list(curve)), np.array(list(curve.values()))
    chances: np.ndarray = chance[np.maximum(np.searchsorted(listed, places, side="right") - 1, 0)]
    return chances


def _checked_place(key: Any) -> int:
    key = key.item() if isinstance(key, np.generic) else key
    text = key if isinstance(key, str) else str(key)
    whole = not isinstance(key, bool) and text.isascii() and text.isdigit() and len(text) <= 10
    if not whole or int(text) > LAST_PLACE:
        raise UsageError(
            f"The places of `examination` must be whole numbers from 0 up. Got {shown(key)}."
        )
    return int(text)
