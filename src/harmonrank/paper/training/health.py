"""Health of a network: its paths taken apart on some rows."""

__all__ = ["HEALTH_ROWS", "Separable", "health_of"]

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from harmonrank.metrics import spearman
from harmonrank.paper.health import Health
from harmonrank.paper.network import Paths
from harmonrank.paper.training.arrays import Arrays

HEALTH_ROWS = 20_000
"""So many rows are looked at, if there are as many."""


class Separable(Protocol):
    """A network whose score is the sum of paths."""

    @property
    def config(self) -> Any:
        """Its size, with `context_features`."""

    def __call__(self, scores: Tensor, context: Tensor) -> Tensor:
        """Return the score of every row."""

    def paths(self, scores: Tensor, context: Tensor) -> Paths:
        """Return its parts."""


@torch.no_grad()
def health_of(network: Separable, rows: Arrays, seed: int = 0, most: int = HEALTH_ROWS) -> Health:
    """Measure the paths of a network on some of the rows, evenly spread.

    Args:
        network: On the device of the rows.
        rows: Scores and context; labels are not looked at.
        seed: Decides how the context is shuffled.
        most: How many rows are looked at.
    """
    picked = torch.linspace(0, max(len(rows) - 1, 0), min(len(rows), most)).long()
    batch = rows.batch(picked.to(rows.scores.device))
    paths = network.paths(batch.scores, batch.context)
    fused = paths.fused
    unit = float(fused.std(correction=0)) if len(picked) else 0.0

    def spread(path: Tensor | None) -> float | None:
        return None if path is None else float(path.std(correction=0)) / (unit or 1.0)

    context = None
    if network.config.context_features:
        order = torch.from_numpy(np.random.default_rng([seed, 0xC7]).permutation(len(picked)))
        shuffled = network(batch.scores, batch.context[order.to(batch.context.device)])
        both = torch.stack([fused, shuffled], dim=1).double().cpu().numpy()
        context = max(0.0, 1 - float(np.nan_to_num(spearman(both)[0, 1], nan=1.0)))
    return Health(
        rows=len(picked),
        fused=unit,
        relation_aware=spread(paths.relation_aware) or 0.0,
        gated=spread(paths.gated),
        linear=spread(paths.linear),
        self_attention=_from_uniform(paths.A_r),
        cross_attention=_from_uniform(paths.A_p),
        context=context,
    )


def _from_uniform(attention: Tensor | None) -> float | None:
    """Return the mean of ½ Σ_j |A_ij − 1/M|; None for one objective, which cannot choose."""
    if attention is None or attention.shape[-1] < 2:
        return None
    distance = (attention - 1 / attention.shape[-1]).abs().sum(dim=-1) / 2
    return float(distance.mean())
