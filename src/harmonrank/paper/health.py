"""Health: whether each path of a network has an effect, measured on rows."""

__all__ = ["HEALTH_ROWS", "Health", "health_of"]

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from harmonrank.metrics import spearman

if TYPE_CHECKING:
    from torch import Tensor

    from harmonrank.paper.network import Network
    from harmonrank.paper.training.rows import Arrays

HEALTH_ROWS = 20_000
"""At most this many rows are measured."""

_REMEDY = (
    "try less `weight_decay`, another `learning_rate`, more `steps`, or buckets on another `scale`"
)
_LEAST_SPREAD = 1e-3  # of the fused score's
_LEAST_DISTANCE = 1e-3
_LEAST_EFFECT = 1e-6


@dataclass(frozen=True)
class Health:
    """How much each path of the network adds to the fused score; None for a path it lacks.

    Attributes:
        rows: How many were measured.
        fused: Standard deviation of the fused score, s1 + s2 + s3.
        relation_aware: Standard deviation of s1, in units of the fused score's.
        gated: The same of s2.
        linear: The same of s3.
        self_attention: Mean total variation distance ½ Σ_j |A_ij − 1/M| of A_r's rows from
            uniform: 0 if every objective attends equally to all, (M−1)/M if only to one.
        cross_attention: The same of A_p, the attention of the context to each objective.
        context: 1 − the rank correlation of the fused score before and after the context is
            shuffled between rows: 0 if the context has no effect.
    """

    rows: int
    fused: float
    relation_aware: float
    gated: float | None
    linear: float | None
    self_attention: float | None
    cross_attention: float | None
    context: float | None

    @property
    def dead(self) -> tuple[str, ...]:
        """The parts without effect, in words."""
        faults = []
        if not self.fused > 0:
            return ("the fused score is the same for all rows",)
        for name in ("relation_aware", "gated", "linear"):
            spread = getattr(self, name)
            if spread is not None and spread < _LEAST_SPREAD:
                faults.append(f"the {name.replace('_', '-')} path adds nothing")
        for name, letter in (("self_attention", "A_r"), ("cross_attention", "A_p")):
            distance = getattr(self, name)
            if distance is not None and distance < _LEAST_DISTANCE:
                faults.append(f"the {name.replace('_', '-')} {letter} is uniform")
        if self.context is not None and self.context < _LEAST_EFFECT:
            faults.append("the context has no effect")
        return tuple(faults)

    def warning(self, network: str = "This network", remedy: str = _REMEDY) -> str | None:
        """Return one sentence on the dead parts and what to try; None if there are none."""
        if not self.dead:
            return None
        return f"{network} is partly dead: {', '.join(self.dead)}; {remedy}."

    def words(self) -> str:
        """Describe all of it in one line."""
        spreads = {"s1": self.relation_aware, "s2": self.gated, "s3": self.linear}
        distances = {"A_r": self.self_attention, "A_p": self.cross_attention}
        parts = [f"{name} {value:.3g}" for name, value in spreads.items() if value is not None]
        text = f"Spread of the paths, the score's being 1: {', '.join(parts)}"
        far = [f"{name} {value:.3g}" for name, value in distances.items() if value is not None]
        text += f"; distance from uniform: {', '.join(far)}" if far else ""
        if self.context is not None:
            text += f"; rank correlation lost by a shuffled context: {self.context:.2g}"
        return f"{text}."

    def to_dict(self) -> dict[str, Any]:
        """Return the figures and the dead parts, for JSON."""
        return {**asdict(self), "dead": list(self.dead)}


def health_of(network: "Network", rows: "Arrays", seed: int = 0, most: int = HEALTH_ROWS) -> Health:
    """Measure the paths of a network on some of the rows, evenly spread.

    Args:
        network: On the device of the rows.
        rows: Scores and context; labels are not used.
        seed: Decides how the context is shuffled.
        most: How many rows are measured at most.
    """
    import torch

    picked = torch.linspace(0, max(len(rows) - 1, 0), min(len(rows), most)).long()
    batch = rows.batch(picked.to(rows.scores.device))
    with torch.no_grad():
        paths = network.paths(batch.scores, batch.context)
    fused = paths.fused
    unit = float(fused.std(correction=0)) if len(picked) else 0.0

    def spread(path: "Tensor | None") -> float | None:
        return None if path is None else float(path.std(correction=0)) / (unit or 1.0)

    context = None
    if network.config.context_features:
        order = torch.from_numpy(np.random.default_rng([seed, 0xC7]).permutation(len(picked)))
        other = batch.context[order.to(batch.context.device)]
        with torch.no_grad():
            shuffled = network.paths(batch.scores, other).fused
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


def _from_uniform(attention: "Tensor | None") -> float | None:
    """Return the mean of ½ Σ_j |A_ij − 1/M|; None for a single objective."""
    if attention is None or attention.shape[-1] < 2:
        return None
    distance = (attention - 1 / attention.shape[-1]).abs().sum(dim=-1) / 2
    return float(distance.mean())
