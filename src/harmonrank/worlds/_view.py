"""A view: what holds at rows of a given context and time."""

__all__ = ["View", "view_of"]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.worlds._parts import Floats

if TYPE_CHECKING:
    from harmonrank.worlds._world import World


@dataclass(frozen=True, eq=False)
class View:
    """What holds at some rows.

    Attributes:
        mu: (rows, objectives), the mean logits, as all but the last.
        tau: the spread of the upstream noise.
        a: the upstream scale.
        b: the upstream offset.
        gain: (rows, factors), how much the common factors weigh.
    """

    mu: Floats
    tau: Floats
    a: Floats
    b: Floats
    gain: Floats


def view_of(world: "World", context: Mapping[str, NDArray[Any]], time: Floats) -> View:
    """Return what holds in a world at rows of this context and time."""
    rows = len(time)
    mu, b = world.mu.at(context, rows), world.b.at(context, rows)
    tau, a = np.exp(world.log_tau.at(context, rows)), np.tile(world.a, (rows, 1))
    gain = np.ones((rows, world.loadings.shape[1]))
    if world.interactions is not None:
        gain = np.exp(world.interactions.gain.at(context, rows))
    if world.drift is not None:
        mu += world.drift.at(time)
    for swap in world.swaps:
        columns = np.array([world.objectives.index(name) for name in swap.objectives])
        cells = np.ix_(np.flatnonzero(time >= swap.at), columns)
        a[cells] *= swap.a
        b[cells] += swap.b
        tau[cells] *= swap.tau_scale
    return View(mu, tau, a, b, gain)
