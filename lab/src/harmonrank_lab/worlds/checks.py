"""Whether the parts of a world fit together."""

__all__ = ["check_parts"]

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.support import UsageError, did_you_mean
from harmonrank.worlds import Additive

if TYPE_CHECKING:
    from harmonrank_lab.worlds.full_world import World


def check_parts(world: "World") -> None:
    """Refuse a world whose parts do not fit together."""
    M = len(world.objectives)
    if M == 0 or len(set(world.objectives)) < M:
        raise UsageError(
            "`objectives` must name at least one objective and each objective once. "
            f"Got {world.objectives}."
        )
    for name, array, shape in _shapes(world, M):
        # What −1 stands for is as the array has it.
        wanted = tuple(array.shape[-1] if size < 0 else size for size in shape)
        if array.shape != wanted:
            raise UsageError(f"`{name}` must have the shape {wanted}. Got {array.shape}.")
    for name in ("own", "a"):
        if not np.all(getattr(world, name) > 0):
            raise UsageError(f"`{name}` must be above 0. Got {getattr(world, name)}.")
    for name, share in world.categories.items():
        if np.min(share) < 0 or abs(np.sum(share) - 1) > 1e-9:
            raise UsageError(f"categories[{name!r}] must be shares that sum to 1. Got {share}.")
    if not 1 <= world.request_rows[0] <= world.request_rows[1]:
        raise UsageError(f"`request_rows` must be (fewest, most). Got {world.request_rows}.")
    if world.backbone is not None and not np.all(abs(world.backbone) < 1):
        raise UsageError(f"`backbone` must be inside (−1, 1). Got {world.backbone}.")
    if world.requests is not None and world.interactions is not None:
        raise UsageError(
            "A world has `requests` or `interactions`, not both: the exact probabilities of "
            "rows with both are not known."
        )


def _shapes(world: "World", M: int) -> Iterator[tuple[str, NDArray[Any], tuple[int, ...]]]:
    """Yield the name of every array that a world has, the array, and the shape it must have."""
    yield "loadings", world.loadings, (M, -1)
    yield from ((name, getattr(world, name), (M,)) for name in ("own", "a"))
    for name in ("mu", "log_tau", "b"):
        additive: Additive = getattr(world, name)
        yield f"{name}.base", additive.base, (M,)
        for feature, effect in additive.effects.items():
            if feature not in world.categories:
                hint = did_you_mean(feature, world.categories)
                raise UsageError(f"{name} has an effect of the unknown feature {feature!r}. {hint}")
            yield f"{name}.effects[{feature!r}]", effect, (len(world.categories[feature]), M)
    if world.backbone is not None:
        yield "backbone", world.backbone, (M,)
    if (hidden := world.hidden) is not None:
        yield "hidden.chance", hidden.chance, (len(hidden.shares), M)
        yield "hidden.score", hidden.score, (len(hidden.shares), M)
        yield "hidden.noise", hidden.noise, (len(hidden.shares),)
    for name in ("chance", "score", "hidden") if world.requests is not None else ():
        if (effects := getattr(world.requests, name)) is not None:
            yield f"requests.{name}", effects, (M, -1)
    if (parts := world.interactions) is not None:
        yield "interactions.spread", parts.spread, (M,)
        yield "interactions.products", parts.products, (len(parts.pairs), M)
