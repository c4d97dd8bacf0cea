"""Options: types with bounds for the fields of a config, and checks of a user's arguments."""

__all__ = [
    "MOST_SEED",
    "MOST_WHOLE",
    "Buckets",
    "Count",
    "Nonnegative",
    "Positive",
    "Rate",
    "Seconds",
    "Share",
    "Width",
    "check_fields",
    "checked_device",
    "checked_flag",
    "checked_listener",
    "checked_options",
    "checked_path",
    "checked_seed",
    "checked_whole",
]

import dataclasses
import math
import operator
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from harmonrank.support.errors import UsageError, did_you_mean, shown
from harmonrank.support.events import OnEvent
from harmonrank.support.extras import import_extra

Width = Annotated[int, Meta(ge=1, le=1024)]
"""The width of a vector in a network; with a wider one a step would take minutes."""

Buckets = Annotated[int, Meta(ge=1, le=1_000_000)]
"""Rows of a table per score."""

Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
"""A number of rows, steps, epochs or trees, at least one."""

Rate = Annotated[float, Meta(gt=0, le=1000)]
"""A learning rate."""

Share = Annotated[float, Meta(ge=0, lt=1)]
"""A share below 1."""

Positive = Annotated[float, Meta(gt=0, le=1e12)]
Nonnegative = Annotated[float, Meta(ge=0, le=1e12)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]

MOST_SEED = 2**32 - 1
"""The largest seed: seeds of parts are derived from it, and generators take 64 bits."""

MOST_WHOLE = 10**12
"""The largest number of rows and the like, more than any machine holds."""

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def checked_options(name: str, config: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options in the types of a config's fields.

    An unknown option is refused, and so is a value of another type or outside the bounds of its
    field (`msgspec.Meta`).

    >>> from harmonrank.fusion.baselines.logistic import LogisticConfig
    >>> checked_options("logistic", LogisticConfig, {"ridges": [30, 3]})
    {'ridges': (30.0, 3.0)}

    Args:
        name: Of what is configured, for the error.
        config: A dataclass.
        options: Its fields by name.
    """
    known = [field.name for field in dataclasses.fields(config)]
    hints, checked = get_type_hints(config, include_extras=True), {}
    for key, value in options.items():
        if key not in known:
            hint = did_you_mean(key, known) if known else "It takes no options."
            raise UsageError(f"{name} has no option '{key}'. {hint}")
        try:
            checked[key] = msgspec.convert(value, hints[key])
            right = not isinstance(checked[key], float) or math.isfinite(checked[key])
        except (msgspec.ValidationError, TypeError, RecursionError):
            right = False
        if not right:
            raise UsageError(
                f"Option '{key}' of {name} must be {_describe(hints[key])}. Got {shown(value)}."
            )
    return checked


def check_fields(name: str, config: Any) -> None:
    """Check the fields of a frozen dataclass by their types and bounds; for `__post_init__`.

    Args:
        name: Of what is configured, for the error.
        config: Its fields are converted to their types, such as a whole number to a float.
    """
    given = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    for key, value in checked_options(name, type(config), given).items():
        object.__setattr__(config, key, value)


def checked_seed(seed: Any) -> int:
    """Return a seed as a whole number from 0 up.

    >>> checked_seed(3)
    3
    """
    return checked_whole("seed", seed, most=MOST_SEED)


def checked_whole(name: str, value: Any, least: int = 0, most: int = MOST_WHOLE) -> int:
    """Return a whole number from `least` up, of any integer type except bool.

    >>> checked_whole("passes", "20", least=1)
    Traceback (most recent call last):
    harmonrank.support.errors.UsageError: `passes` must be a whole number from 1 up. Got '20'.
    """
    try:
        whole = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = None
    if whole is None or whole < least:
        raise UsageError(f"`{name}` must be a whole number from {least} up. Got {shown(value)}.")
    if whole > most:
        raise UsageError(f"`{name}` must be at most {most:,}. Got {shown(whole)}.")
    return whole


def checked_flag(name: str, value: Any) -> bool:
    """Return a switch."""
    if not isinstance(value, bool):
        raise UsageError(f"`{name}` must be True or False. Got {shown(value)}.")
    return value


def checked_path(name: str, path: Any) -> Path:
    """Return the path of a file or a folder, given as text or as a Path."""
    try:
        return Path(path)
    except TypeError:
        message = f"`{name}` must be a path, as text or as a Path. Got {shown(path)}."
        raise UsageError(message) from None


def checked_listener(on_event: Any) -> OnEvent:
    """Return the listener of events; without one, a function that does nothing."""
    if on_event is None:
        return lambda _: None
    if not callable(on_event):
        raise UsageError(
            f"`on_event` must be a function of one event, such as print. Got {shown(on_event)}."
        )
    listener: OnEvent = on_event
    return listener


def checked_device(device: Any, name: str = "Device") -> str:
    """Return the name of a device that torch can use; 'cpu' does not need torch.

    Args:
        device: As torch calls it, such as 'cpu' or 'cuda:1'.
        name: How the user names it.
    """
    if not isinstance(device, str):
        raise UsageError(f"`device` must be text, such as 'cpu' or 'cuda'. Got {shown(device)}.")
    if device != "cpu":
        torch = import_extra("torch", who=f"{name} {device}")
        try:
            torch.empty(0, device=device)
        except (AssertionError, NotImplementedError, RuntimeError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise UsageError(f"{name} {device} cannot be used: {reason}; use cpu.") from None
    return device


def _describe(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        plain, *metas = get_args(hint)
        return _describe(plain) + "".join(_bounds(meta) for meta in metas)
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_describe(part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return " or ".join(repr(choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return f"a list, each {_describe(get_args(hint)[0])}"
    return "null" if hint is NoneType else _WORDS.get(hint, str(hint))


def _bounds(meta: msgspec.Meta) -> str:
    """Return what a bound adds to a description: ' from 1 to 1,024'."""
    words = {
        "gt": "above",
        "ge": "from",
        "lt": "below",
        "le": "to" if meta.ge is not None else "up to",
    }
    bounds = [(word, getattr(meta, kind)) for kind, word in words.items()]
    text = "".join(f" {word} {_number(bound)}" for word, bound in bounds if bound is not None)
    return text if meta.min_length is None else f"{text}, with {meta.min_length} or more of them"


def _number(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:,g}"
