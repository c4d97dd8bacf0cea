"""Whether the parts of a world fit together."""

__all__ = ["check_parts"]

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
    _check_shape("loadings", world.loadings, (M, world.loadings.shape[-1]))
    for name in ("own", "a"):
        _check_shape(name, getattr(world, name), (M,))
        if not np.all(getattr(world, name) > 0):
            raise UsageError(f"`{name}` must be above 0. Got {getattr(world, name)}.")
    for name in ("mu", "log_tau", "b"):
        _check_additive(world, name, getattr(world, name))
    for name, share in world.categories.items():
        if np.min(share) < 0 or abs(np.sum(share) - 1) > 1e-9:
            raise UsageError(f"categories[{name!r}] must be shares that sum to 1. Got {share}.")
    if not 1 <= world.request_rows[0] <= world.request_rows[1]:
        raise UsageError(f"`request_rows` must be (fewest, most). Got {world.request_rows}.")
    _check_violations(world, M)


def _check_violations(world: "World", M: int) -> None:
    if world.backbone is not None:
        _check_shape("backbone", world.backbone, (M,))
        if not np.all(abs(world.backbone) < 1):
            raise UsageError(f"`backbone` must be inside (−1, 1). Got {world.backbone}.")
    if world.hidden is not None:
        classes = len(world.hidden.shares)
        for name in ("chance", "score"):
            _check_shape(f"hidden.{name}", getattr(world.hidden, name), (classes, M))
        _check_shape("hidden.noise", world.hidden.noise, (classes,))
    if world.requests is not None:
        for name in ("chance", "score", "hidden"):
            effects = getattr(world.requests, name)
            if effects is not None:
                _check_shape(f"requests.{name}", effects, (M, effects.shape[-1]))
        if world.interactions is not None:
            raise UsageError(
                "A world has `requests` or `interactions`, not both: the exact probabilities of "
                "rows with both are not known."
            )
    if world.interactions is not None:
        _check_shape("interactions.spread", world.interactions.spread, (M,))
        products = (len(world.interactions.pairs), M)
        _check_shape("interactions.products", world.interactions.products, products)


def _check_additive(world: "World", name: str, additive: Additive) -> None:
    _check_shape(f"{name}.base", additive.base, (len(world.objectives),))
    for feature, effect in additive.effects.items():
        if feature not in world.categories:
            hint = did_you_mean(feature, world.categories)
            raise UsageError(f"{name} has an effect of the unknown feature {feature!r}. {hint}")
        shape = (len(world.categories[feature]), len(world.objectives))
        _check_shape(f"{name}.effects[{feature!r}]", effect, shape)


def _check_shape(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        raise UsageError(f"`{name}` must have the shape {shape}. Got {array.shape}.")
