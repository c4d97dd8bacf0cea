"""AUC within requests where effects that nobody sees make the labels of a request dependent."""

__all__ = ["RequestAreas"]

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harmonrank.metrics import expected_grouped_auc, request_gains
from harmonrank.worlds import AnyWorld, Sample, normal_nodes
from harmonrank_lab.worlds.full_world import World
from harmonrank_lab.worlds.parts import Floats

_NODES = 16  # 48 move no AUC of a preset by 1e-6.


@dataclass(frozen=True, eq=False)
class RequestAreas:
    """What AUC within requests is on average over labels, and over effects hidden from upstream.

    Given these effects labels are independent, and eq. 2 of docs/per-request.md holds. The AUC of
    an objective depends on its own effect alone, which is normal, so a Gauss–Hermite rule over
    eq. 2 and its denominator is exact for dependent labels too. In a world in which nothing is
    hidden from upstream there is one node: the truth of the sample.

    Attributes:
        request: (rows,).
        truth: (nodes, rows, objectives), p_m given scores, context and the effect at each node.
        usable: (nodes, objectives), the rows expected in usable requests, times the node's weight.
    """

    request: NDArray[np.int64]
    truth: Floats
    usable: Floats

    @classmethod
    def of(
        cls, world: AnyWorld, draw: Callable[[AnyWorld], Sample], nodes: int = _NODES
    ) -> "RequestAreas":
        """Return those of rows that `draw` samples of a world, with their truth."""
        worlds, weights = [world], np.ones(1)
        if isinstance(world, World) and world.request_effects.hidden is not None:
            x, weights = normal_nodes(nodes)
            worlds = [replace(world, hidden_at=node) for node in x]
        samples = [draw(each) for each in worlds]
        request, truth = samples[0].request, np.array([sample.truth for sample in samples])
        starts = np.flatnonzero(np.diff(request, prepend=-1))
        sizes = np.diff(starts, append=len(request))[:, None]
        none, every = (np.multiply.reduceat(p, starts, axis=1) for p in (1 - truth, truth))
        usable = (sizes * np.where(sizes > 1, 1 - none - every, 0.0)).sum(axis=1)
        return cls(request, truth, weights[:, None] * usable)

    def auc(self, score: Floats) -> Floats:
        """Return the AUC within requests of a score, (objectives,)."""
        areas = [expected_grouped_auc(score, p, self.request) for p in self.truth]
        return np.asarray(np.average(areas, axis=0, weights=self.usable))

    def best(self) -> Floats:
        """Return the best order of each request, in the sense of eq. 4 of docs/per-request.md."""
        share = self.usable / self.usable.sum(axis=0)
        parts = zip(share, self.truth, strict=True)
        return np.asarray(sum((w * request_gains(p, self.request) * p).sum(1) for w, p in parts))

    @cached_property
    def ceiling(self) -> float:
        """The largest AUC-sum within requests."""
        return float(self.auc(self.best()).sum())

    def regret(self, score: Floats) -> float:
        """Return how far the AUC-sum within requests is below the best."""
        return self.ceiling - float(self.auc(score).sum())
