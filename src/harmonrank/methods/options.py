"""Options: what a method's config allows, checked before anything is done."""

__all__ = ["check_options"]

import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from harmonrank.errors import UsageError, did_you_mean

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def check_options(name: str, config: type, options: Mapping[str, Any]) -> None:
    """Refuse an option that a config does not have, or whose type is another.

    >>> from harmonrank.methods.closed_form import ClosedFormConfig
    >>> check_options("closed-form", ClosedFormConfig, {"calibration": "isotonic"})

    Args:
        name: Of the method, for the error.
        config: A dataclass.
        options: Its fields by name.
    """
    known = [field.name for field in dataclasses.fields(config)]
    hints = get_type_hints(config)
    for key, value in options.items():
        if key not in known:
            hint = did_you_mean(key, known) if known else "It takes no options."
            raise UsageError(f"{name} has no option '{key}'. {hint}")
        if not _fits(value, hints[key]):
            raise UsageError(
                f"Option '{key}' of {name} must be {_describe(hints[key])}. Got {value!r}."
            )


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint not in _WORDS and hint is not NoneType:
        return True  # what a config alone can judge
    # A bool is an int to Python, but nobody means it as one.
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, int | float if hint is float else hint)


def _describe(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_describe(part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return " or ".join(repr(choice) for choice in get_args(hint))
    return "null" if hint is NoneType else _WORDS.get(hint, str(hint))
