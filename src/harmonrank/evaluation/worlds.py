"""All worlds by name: those of the data layer, and the one whose scores were trained."""

__all__ = ["WORLDS", "AnyWorld", "world"]

from typing import TYPE_CHECKING, Literal, TypeAlias, overload

from harmonrank.data.worlds import WORLDS as DRAWN
from harmonrank.data.worlds import World
from harmonrank.data.worlds import world as drawn_world
from harmonrank.errors import UsageError, did_you_mean
from harmonrank.options import checked_whole

if TYPE_CHECKING:
    from harmonrank.evaluation.trained import TrainedWorld

TRAINED = "trained"
WORLDS: tuple[str, ...] = (*DRAWN, TRAINED)

AnyWorld: TypeAlias = "World | TrainedWorld"


# A literal name is also a string; a type checker that sees it must not take the second.
@overload
def world(  # type: ignore[overload-overlap]
    name: Literal["trained"], *, redraw: int | None = None
) -> "TrainedWorld": ...
@overload
def world(name: str, *, redraw: int | None = None) -> World: ...
def world(name: str, *, redraw: int | None = None) -> AnyWorld:
    """Return a preset, or another world of the same kind.

    `trained` simulates a log and trains networks on it, which takes a minute or more.

    >>> world("elive").objectives
    ('buy', 'comment', 'follow', 'like', 'long_view')

    Args:
        name: one of `WORLDS`.
        redraw: seed of the other world.
    """
    if name not in WORLDS:
        raise UsageError(f"There is no world {name!r}. {did_you_mean(name, WORLDS)}")
    redraw = None if redraw is None else checked_whole("redraw", redraw)
    if name != TRAINED:
        return drawn_world(name, redraw=redraw)
    from harmonrank.evaluation.trained import trained_world

    return trained_world(redraw)
