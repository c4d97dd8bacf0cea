"""Health: whether each path of a network does something, measured on rows."""

__all__ = ["Health"]

from dataclasses import asdict, dataclass
from typing import Any

_LEAST_SPREAD = 1e-3  # of the fused score's
_LEAST_DISTANCE = 1e-3
_LEAST_EFFECT = 1e-6


@dataclass(frozen=True)
class Health:
    """How much each path of the network adds to the fused score; None for what it does not have.

    Attributes:
        rows: How many were looked at.
        fused: Standard deviation of the fused score, s1 + s2 + s3.
        relation_aware: Standard deviation of s1, in units of the fused score's.
        gated: The same of s2.
        linear: The same of s3.
        self_attention: Mean total variation distance ½ Σ_j |A_ij − 1/M| of A_r's rows from
            uniform: 0 if every objective attends to all alike, (M−1)/M if to one alone.
        cross_attention: The same of A_p, how much the context asks each objective.
        context: 1 − the rank correlation of the fused score with itself after the context was
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
        """What has no effect, in words."""
        found = []
        if not self.fused > 0:
            return ("the fused score is the same for all rows",)
        for name in ("relation_aware", "gated", "linear"):
            spread = getattr(self, name)
            if spread is not None and spread < _LEAST_SPREAD:
                found.append(f"the {name.replace('_', '-')} path adds nothing")
        for name, letter in (("self_attention", "A_r"), ("cross_attention", "A_p")):
            distance = getattr(self, name)
            if distance is not None and distance < _LEAST_DISTANCE:
                found.append(f"the {name.replace('_', '-')} {letter} is uniform")
        if self.context is not None and self.context < _LEAST_EFFECT:
            found.append("the context has no effect")
        return tuple(found)

    def warning(self, network: str = "This network") -> str | None:
        """Return one sentence about what is dead and what to try; None if all is alive."""
        if not self.dead:
            return None
        return (
            f"{network} is partly dead: {', '.join(self.dead)}; try less `weight_decay`, "
            "another `learning_rate`, more `steps`, or buckets on another `scale`."
        )

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
        """Return the figures and what is dead, for JSON."""
        return {**asdict(self), "dead": list(self.dead)}
