"""All worlds by name: those of the package, and those that other packages add."""

__all__ = ["AnyWorld", "world", "world_names"]

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from harmonrank.support.errors import UsageError, did_you_mean
from harmonrank.support.extras import plugins
from harmonrank.support.options import checked_whole
from harmonrank.worlds.presets import PRESETS, preset
from harmonrank.worlds.sample import Sample

PLUGINS = "harmonrank.worlds"
"""The entry point by which other packages add worlds: a function of a name and of a redraw."""

_OF_LAB = ("backbone", "tails", "interactions", "leak", "requests", "trained")


class AnyWorld(Protocol):
    """What a world must be: columns, and rows of which all is known."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def objectives(self) -> tuple[str, ...]:
        """The objectives, in order."""
        ...

    @property
    def context(self) -> Mapping[str, int]:
        """The context columns, and how many values each has."""
        ...

    def sample(
        self,
        rows: int,
        *,
        seed: int,
        start: int = 0,
        horizon: int | None = None,
        with_truth: bool = True,
    ) -> Sample:
        """Draw rows."""
        ...


def world_names() -> tuple[str, ...]:
    """Return the names of all worlds."""
    added = plugins(PLUGINS)
    known = [*PRESETS, *(name for name in _OF_LAB if name in added)]
    return (*known, *sorted(set(added) - set(known)))


def world(name: str, *, redraw: int | None = None) -> Any:
    """Return a preset, or another world of the same kind, which harmonrank-lab draws.

    `trained`, of harmonrank-lab, simulates a log and trains networks on it, which takes a minute
    or more.

    >>> world("elive").objectives
    ('buy', 'comment', 'follow', 'like', 'long_view')

    Args:
        name: one of `world_names`.
        redraw: seed of the other world.
    """
    redraw = None if redraw is None else checked_whole("redraw", redraw)
    added = plugins(PLUGINS)
    if name in added:
        module, _, function = added[name].partition(":")
        return getattr(import_module(module), function)(name, redraw)
    if name in _OF_LAB or (name in PRESETS and redraw is not None):
        what = f"The world '{name}'" if name in _OF_LAB else f"A redraw of the world '{name}'"
        raise UsageError(f"{what} is part of harmonrank-lab; pip install harmonrank-lab.")
    if name not in PRESETS:
        raise UsageError(f"There is no world {name!r}. {did_you_mean(name, world_names())}")
    return preset(name)
