"""All worlds by name: those of the data layer, and those that other packages add."""

__all__ = ["AnyWorld", "world", "world_names"]

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from harmonrank.support.errors import UsageError, did_you_mean
from harmonrank.support.extras import plugins
from harmonrank.support.options import checked_whole
from harmonrank.worlds import WORLDS as DRAWN
from harmonrank.worlds import Sample
from harmonrank.worlds import world as drawn_world

PLUGINS = "harmonrank.worlds"
"""The entry point by which other packages add worlds: a function of the seed of a redraw."""


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
    return (*DRAWN, *plugins(PLUGINS))


def world(name: str, *, redraw: int | None = None) -> Any:
    """Return a preset, or another world of the same kind.

    `trained`, of harmonrank-lab, simulates a log and trains networks on it, which takes a minute
    or more.

    >>> world("elive").objectives
    ('buy', 'comment', 'follow', 'like', 'long_view')

    Args:
        name: one of `world_names`.
        redraw: seed of the other world.
    """
    if name not in world_names():
        raise UsageError(f"There is no world {name!r}. {did_you_mean(name, world_names())}")
    redraw = None if redraw is None else checked_whole("redraw", redraw)
    if name in DRAWN:
        return drawn_world(name, redraw=redraw)
    module, _, function = plugins(PLUGINS)[name].partition(":")
    return getattr(import_module(module), function)(redraw)
