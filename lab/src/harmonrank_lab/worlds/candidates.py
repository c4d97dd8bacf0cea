"""Candidates: items drawn for requests whose context is given, with the chance of each label."""

__all__ = ["draw_candidates"]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harmonrank.worlds import Draws, upstream_scores
from harmonrank_lab.worlds.full_world import Unseen
from harmonrank_lab.worlds.parts import Floats

if TYPE_CHECKING:
    from harmonrank_lab.worlds.full_world import World


@dataclass(frozen=True, eq=False)
class DrawnCandidates:
    """What could be shown.

    Attributes:
        scores: (requests, items, objectives), float32, strictly inside (0, 1): what is seen.
        chance: (requests, items, objectives), sigmoid z: how likely each label is if the item is
            looked at. No method sees it.
    """

    scores: NDArray[np.float32]
    chance: Floats


def draw_candidates(
    world: "World",
    context: Mapping[str, NDArray[Any]],
    time: Floats,
    items: int,
    rng: np.random.Generator,
) -> DrawnCandidates:
    """Draw items for every request, as `World.sample` does for contexts of its own.

    >>> from harmonrank_lab.worlds import world
    >>> elive = world("elive")
    >>> context = {name: np.zeros(4, int) for name in elive.context}
    >>> draw_candidates(elive, context, np.zeros(4), 20, np.random.default_rng(1)).scores.shape
    (4, 20, 5)

    Args:
        world: Where the items come from.
        context: Category numbers of every feature, one per request.
        time: (requests,), in [0, 1).
        items: Per request.
        rng: Where the draws come from.
    """
    requests, M = len(time), len(world.objectives)
    rows = {name: np.repeat(values, items) for name, values in context.items()}
    factors = rng.standard_normal((requests * items, world.loadings.shape[1]))
    own, noise = (rng.standard_normal((requests * items, M)) for _ in range(2))
    # Their own generator, so that what is drawn next does not depend on what is hidden.
    unseen = rng.spawn(1)[0]
    backbone, hidden = unseen.standard_normal(requests * items), unseen.random(requests * items)
    view = world.at(rows, np.repeat(time, items))
    shared = np.zeros((requests, 0))
    if world.requests is not None:
        shared = rng.spawn(1)[0].standard_normal((requests, world.requests.count))
    of_row = np.repeat(np.arange(requests), items)
    draws = Draws(0, 0, of_row, rows, factors, own, noise, noise)
    z, o = world.latent(view, draws, Unseen(backbone, hidden, shared[of_row]))
    shape = (requests, items, M)
    return DrawnCandidates(
        upstream_scores(view, o).reshape(shape), (1 / (1 + np.exp(-z))).reshape(shape)
    )
