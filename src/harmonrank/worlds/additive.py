"""Functions of the context: a sum of one effect per feature."""

__all__ = ["Additive", "Floats", "draw_effects", "draw_shares"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Additive:
    """A value per objective that depends on the context: base_m + Σ_k effect_k[c_k, m].

    >>> additive = Additive(base=np.zeros(1), effects={"gender": np.array([[-1.0], [1.0]])})
    >>> additive.at({"gender": np.array([1, 0])}, rows=2)
    array([[ 1.], [-1.]])

    Attributes:
        base: (objectives,).
        effects: per context feature (categories, objectives); a feature may be absent.
    """

    base: Floats
    effects: Mapping[str, Floats] = field(default_factory=dict)

    def at(self, context: Mapping[str, NDArray[Any]], rows: int) -> Floats:
        """Return the value at every row, (rows, objectives)."""
        value = np.tile(self.base, (rows, 1))
        for name, effect in self.effects.items():
            value += effect[context[name]]
        return value

    def take(self, columns: Sequence[int]) -> "Additive":
        """Keep these objectives."""
        keep = list(columns)
        return Additive(self.base[keep], {k: e[:, keep] for k, e in self.effects.items()})

    def shifted(self, shift: Floats) -> "Additive":
        """Add a constant per objective."""
        return Additive(self.base + shift, self.effects)

    def scaled(self, factor: Floats) -> "Additive":
        """Multiply by a constant per objective."""
        return Additive(self.base * factor, {k: e * factor for k, e in self.effects.items()})


def draw_shares(rng: np.random.Generator, size: int) -> Floats:
    """Draw the shares of a feature's categories, smooth along it and not uniform."""
    share = np.exp(_smooth(0.8 * rng.standard_normal((size, 1)))[:, 0])
    shares: Floats = share / share.sum()
    return shares


def draw_effects(
    rng: np.random.Generator, categories: Mapping[str, Floats], M: int, spread: float
) -> dict[str, Floats]:
    """Draw effects, smooth along each feature, whose sum has this spread over contexts."""
    effects = {}
    for feature, share in categories.items():
        effect = _smooth(rng.standard_normal((share.size, M)))
        effect -= share @ effect
        effects[feature] = effect * (spread / np.sqrt(len(categories) * (share @ effect**2)))
    return effects


def _smooth(values: Floats) -> Floats:
    """Average each category with its neighbours: hours and ages are ordered."""
    for _ in range(len(values) // 4):
        values = (np.roll(values, 1, axis=0) + 2 * values + np.roll(values, -1, axis=0)) / 4
    return values
